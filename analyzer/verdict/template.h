/*
 * template.h - how does a sentence get its figures?
 *
 *   {name}    a figure of figures.c; it may be empty
 *   [ ... ]   left out where a figure in it is empty; what stands in brackets of its own inside does not count
 *   {?name}   nothing, but its brackets stay only where the figure is not empty; {!name}: only where it is
 *   |         what follows is evidence; not in brackets
 *
 * When full   texts are cut.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include "verdict/facts.h"
#include "verdict/findings.h"

#define FIGURE_BYTES 1024

/* What figures are of. */
struct told {
	const struct verdict_facts *facts;
	const struct finding *finding; // NULL: of what to do next
	struct verdict *verdict;
};

void say_template(const struct told *told, const char *template);      // appends to what is being said of a finding
void say_next_template(const struct told *told, const char *template); // to the one thing to do

/* Puts the figure of so many characters of a name into the text, which is empty. In figures.c. */
void figure_put(const struct told *told, const char *name, size_t length, char text[FIGURE_BYTES]);
bool figure_is_known(const char *name, size_t length);

#endif
