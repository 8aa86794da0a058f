/*
 * capture_holders.h - the launcher's look at who holds what: where does it lie in a capture, and which is the newest?
 *
 * When failing  reading: as if nobody looked, and a line in the capture's `damages` says why. Writing: false, and what was there stays.
 */
#ifndef CAPTURE_HOLDERS_H
#define CAPTURE_HOLDERS_H

#include "capture/capture.h"

/* In the capture's copy of the file; NULL: nobody has looked, or what is there is damaged. */
const struct kmem_holders *capture_holders_newest(struct capture *capture);

/*
 * Writes a look, over the older of the two that there is room for. The program may be running, or dead.
 *
 * fd        of the capture, for reading and writing
 * look      sequence, text and figures are filled in, zeros behind the text; the checksum is made here
 * returns   false: the recorder has made no room, or it cannot be written
 */
bool capture_holders_write(int fd, struct kmem_holders *look);

#endif
