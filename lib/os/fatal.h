/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fatal.h - the end of a process whose heap is corrupt or misused.
 *
 * Layer os (L1).  No allocation, no lock, one write(2): one line on stderr,
 * "<eddy>: FAULT: 0xPOINTER", then SIGABRT.
 */
#ifndef EDDY_FATAL_H
#define EDDY_FATAL_H

_Noreturn void eddy_fatal(const char *fault, const void *p);

/* Writes "<eddy>: TEXT" and ends the process the same way. */
_Noreturn void eddy_fatal_text(const char *text);

#endif /* EDDY_FATAL_H */
