/*
 * markdown.h - texts that come from outside, in Markdown as GitHub and GitLab read it.
 *
 * When failing  errors stay in the stream.
 */
#ifndef MARKDOWN_H
#define MARKDOWN_H

#include <stdio.h>

/* A code span that nothing in the text can end; a bar in it ends no cell of a table. */
void markdown_code(const char *text, FILE *stream);

/* Outside of code: nothing of it is taken for Markdown or HTML. */
void markdown_escaped(const char *text, FILE *stream);

#endif
