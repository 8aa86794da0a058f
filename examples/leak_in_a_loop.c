// expect: leaks heap where=leak_in_a_loop.c:18 class=leak live_count=2000 live_bytes=2048000
/*
 * leak_in_a_loop.c - a server that forgets one block per request.
 *
 * Each request takes two blocks and gives back one. The report names the line that took the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS 2000
#define REQUEST_BYTES 1024
#define REPLY_BYTES 4096

static __attribute__((noinline)) char *
read_request(int number)
{
	char *text = malloc(REQUEST_BYTES);

	if (text != NULL)
		snprintf(text, REQUEST_BYTES, "request %d", number);
	return text;
}

static __attribute__((noinline)) size_t
answer(const char *request)
{
	char *reply = malloc(REPLY_BYTES);
	size_t length;

	if (reply == NULL)
		return 0;
	snprintf(reply, REPLY_BYTES, "re: %s", request);
	length = strlen(reply);
	free(reply);
	return length; // and the request is forgotten
}

int
main(void)
{
	size_t sent = 0;

	for (int i = 0; i < REQUESTS; i++)
		sent += answer(read_request(i));
	printf("%d requests, %zu bytes sent\n", REQUESTS, sent);
	return 0;
}
