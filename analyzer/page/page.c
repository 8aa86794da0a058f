/*
 * page.c - one file for a browser (see page.h).
 */
#include "page/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/asset.h"
#include "base/memory.h"
#include "base/progress.h"

/* d3 is Debian's. */
ASSET(css, "analyzer/page/page.css")
ASSET(js, "analyzer/page/page.js")
ASSET(d3, PAGE_D3)
ASSET(license, "analyzer/page/d3.license")

#define PUT_ASSET(name, stream) ((void)fwrite(asset_##name, 1, (size_t)(asset_##name##_end - asset_##name), stream))

/* Inside <script> nothing but a '<' can end it: strings alone have one, where it may be written so. */
static void
put_data(const struct report *report, const struct page_options *options, FILE *stream)
{
	OWNED char *text = NULL;
	size_t bytes;
	FILE *data = memory_stream(&text, &bytes);

	page_data_write(report, options, data);
	memory_stream_close(data);
	for (const char *at = text, *end = text + bytes; at < end;) {
		const char *less = memchr(at, '<', (size_t)(end - at)) ?: end;

		(void)fwrite(at, 1, (size_t)(less - at), stream);
		if (less < end)
			(void)fputs("\\u003c", stream);
		at = less + (less < end);
	}
}

void
page_render(const struct report *report, const struct page_options *options, FILE *stream)
{
	uint64_t once = 0; // whose scripts run: nothing that a capture says can know it

	if (getrandom(&once, sizeof(once), 0) != (ssize_t)sizeof(once))
		abort();
	(void)fprintf(
		stream,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-%016" PRIx64
		"'; style-src 'nonce-%016" PRIx64 "'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
		"<link rel=\"icon\" href=\"data:,\">\n<title>kmemshim</title>\n<style nonce=\"%016" PRIx64 "\">\n",
		once, once, once);
	PUT_ASSET(css, stream);
	(void)fputs("</style>\n</head>\n<body>\n<noscript>This page needs JavaScript. kmemshim report prints the same as "
	            "text.</noscript>\n<main id=\"page\"></main>\n<script id=\"data\" type=\"application/json\">",
	            stream);
	put_data(report, options, stream);
	(void)fprintf(stream, "</script>\n<script nonce=\"%016" PRIx64 "\">\n", once);
	PUT_ASSET(license, stream);
	PUT_ASSET(d3, stream);
	(void)fprintf(stream, "\n</script>\n<script nonce=\"%016" PRIx64 "\">\n", once);
	PUT_ASSET(js, stream);
	progress_end();
	(void)fputs("</script>\n</body>\n</html>\n", stream);
}
