/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fatal.h - the end of a process whose heap is corrupt or misused.
 *
 * Layer os (L1).  No allocation, no lock, one write(2): one line on stderr,
 * "<eddy>: FAULT: 0xPOINTER", then SIGABRT.
 */
#ifndef EDDY_FATAL_H
#define EDDY_FATAL_H

#include <stdbool.h>

_Noreturn void eddy_fatal(const char *fault, const void *p);

/* Writes "<eddy>: TEXT" and ends the process the same way. */
_Noreturn void eddy_fatal_text(const char *text);

/*
 * eddy_fatal_listen - the program hears of a fault before the process ends:
 * fn is called with the line, without its end.  It may leave by exit(3) or
 * longjmp(3); NULL: nobody hears.
 */
typedef void eddy_fatal_listener(const char *message);
void eddy_fatal_listen(eddy_fatal_listener *fn);

/* Tells the listener something that need not be the end.  Returns: whether
 * there is one. */
bool eddy_fatal_tell(const char *message);

#endif /* EDDY_FATAL_H */
