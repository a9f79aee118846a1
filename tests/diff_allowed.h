/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff_allowed.h - what may differ from jemalloc 5.3.0 (Debian's build), for
 * diff_jemalloc.c: call, arguments, its answer, eddy's answer (patterns of
 * fnmatch(3)), and why.  r=2 is ENOENT, 14 EFAULT, 22 EINVAL, 1002 the ENOENT
 * of mallctlnametomib.
 */

/* What is built in, and what the defaults are. */
ALLOW("version", "*", "* \"5.3.0-*", "* \"5.3.1-*", "the interface of 5.3.1")
ALLOW("config.cache_oblivious", "*", "* value 01", "* value 00",
    "large blocks begin at pages")
ALLOW("opt.cache_oblivious", "*", "* value 01", "* value 00",
    "large blocks begin at pages")
ALLOW("config.xmalloc", "*", "* value 00", "* value 01", "xmalloc is built in")
ALLOW("opt.xmalloc", "*", "r=2 *", "@(r=0|r=1|r=22) *", "xmalloc is built in")
ALLOW("opt.dss", "*", "* \"secondary\"", "* \"disabled\"", "no memory of sbrk")
ALLOW("opt.hpa_sec_nshards", "*", "* value 04*", "* value 02*",
    "the default of 5.3.1")
ALLOW("@(arena|stats.arenas).<i>.dss", "* old=*",
    "r=0 * \"@(primary|secondary)\"", "@(r=0|r=14) len=8*", "no memory of sbrk")
ALLOW("stats.arenas.<i>.dss", "* patched", "r=0 * \"@(primary|secondary)\"",
    "r=0 * \"disabled\"", "no memory of sbrk")
ALLOW("arena.<i>.dss", "* new=\"@(primary|secondary)\"", "r=0 *", "r=14 *",
    "no memory of sbrk")
ALLOW("arena.<i>.oversize_threshold", "* old=*", "@(r=0|r=22) * value *",
    "@(r=0|r=22) * value +(0)",
    "no arena for what is oversize, and so no threshold until one is written")

/* What jemalloc 5.3.0 does against its own manual, or the contract's word. */
ALLOW("thread.arena", "* new=none such", "r=14 len=4 wrote 4 bytes",
    "r=14 len=4", "jemalloc has copied the old value before the check")
ALLOW("@(arenas|arena.<i>).*_decay_ms", "* new=-*", "r=14 len=8 wrote 8 bytes",
    "r=14 len=8", "jemalloc has copied the old value before the check")
ALLOW("max_background_threads", "* new=*", "r=22 len=8 value *",
    "r=22 len=8 nothing", "jemalloc has copied the old value before the check")
ALLOW("stats.mutexes.reset", "* arguments *", "r=0 *", "r=1 *",
    "jemalloc does not look at an action's arguments here")
ALLOW("experimental.arenas.<i>.pactivep",
    "*@(new=|old=@(?|1[0-9])|no length|length|nothing)*", "r=22 *", "*",
    "jemalloc refuses all but a plain read, with EINVAL")
ALLOW("experimental.arenas.<i>.pactivep", "*<@(all|narenas|totals|ended)>*",
    "*", "@(r=2|r=1002) *", "no such arena: jemalloc looks twice")
ALLOW("prof.stats.*", "*", "@(r=1002|r=2) *", "@(r=0 depth=*|r=2 *)",
    "jemalloc denies the numbers, not the name, without prof_stats")
ALLOW("thread.tcache.flush", "* arguments *", "r=14 *", "r=1 *",
    "two faults: arguments, and a cache that is off")
ALLOW("xallocx", "*", "fits=1 kept=1 zero=1 same=0 *",
    "fits=1 kept=1 zero=1 same=1 *", "jemalloc's sallocx says otherwise")
ALLOW("mallocx", "*", "NULL=1 errno=12", "NULL=1 errno=77",
    "errno of jemalloc's mmap; the contract has it untouched")
ALLOW("rallocx", "*", "NULL=1 errno=12", "NULL=1 errno=77",
    "errno of jemalloc's mmap; the contract has it untouched")
ALLOW("realloc", "*", "NULL=1 errno=77", "NULL=1 errno=12",
    "jemalloc forgets ENOMEM above its largest class")
ALLOW("memalign", "*", "NULL=1 errno=77", "NULL=1 errno=12",
    "ENOMEM as memalign(3) says")

/* Two faults in one call: which of them is told first. */
ALLOW("@(prof.|thread.prof.)*", "*@(new|old=[01],[01])*", "@(r=2|r=1002) *",
    "@(r=1|r=22) *", "no profiling, and arguments that are wrong")

/* What is counted otherwise, or has no value. */
ALLOW("stats.arenas.<i>.nthreads", "*", "* value *", "* value 00*",
    "threads are bound to arenas only if they ask for it, and counted at once")
ALLOW("stats.arenas.<i>.*_decay_ms", "*<@(all|narenas|totals)>*",
    "* value +(f)", "* value +(0)", "arenas may differ")
ALLOW("stats.arenas.<i>.dss", "*<@(all|narenas|totals)>*", "* \"N/A\"",
    "* \"disabled\"", "no arena has memory of sbrk")

/* Sizes that nobody gets, what is done in place, alignments of chunks. */
ALLOW("xallocx", "old=@([2-9]|[1-9]+([0-9]))[0-9][0-9][0-9][0-9][0-9][0-9] *",
    "r=* kept=1 errno=77", "r=+([0-9]) kept=1 errno=77",
    "a block of chunks becomes a smaller one only elsewhere")
ALLOW("nallocx", "size=8070450532247928832 lg=*", "r=8070450532247928832 *",
    "r=0 *", "neither library has so much")
ALLOW("nallocx", "size=* lg=@(2[2-9]|[3-6]?)", "r=* errno=77",
    "r=2097152 errno=77", "alignments above a chunk are served by whole chunks")
