/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slot.pml - one row of a CPU's slot: {cur, gen} and {end, beg}.
 *
 * Two threads share the CPU.  `sec` says whose restartable section runs; when
 * another section starts, or a membarrier comes, it is aborted: each of its
 * later steps, the committing store too, wants sec == me.  A drainer on
 * another CPU stops the row, closes it, and takes what is in it.
 *
 * gen = epoch * 4 + phase.  Cells are BEG .. BEG + CELLS - 1; what lies below
 * is not the row's.  The row begins VIRGIN, all zero, unless -DOPENED.  Every
 * process may stop for ever anywhere, as nobody waits; STUCK looks whether
 * the slow path then still opens the row.  README.md lists the mutants.
 */
#ifndef STARTS
#define STARTS	1		/* drains begun */
#endif
#ifndef DRAINERS
#define DRAINERS 1
#endif
#define CELLS	2
#define BEG	1
#define FULL	(BEG + CELLS)
#define NEVER	9		/* beg of a closed row */
#define VIRGIN	0
#define OPEN	1
#define STOPPING 2
#define DRAINED	3
#define PHASE(g) ((g) & 3)
#define NEXT(g)	(((g) & ~3) + 4 + OPEN)

#ifdef OPENED
byte cur = FULL, gen = 4 + OPEN, end_ = FULL, beg = BEG;
#else
byte cur, gen, end_, beg;
#endif
byte mem[BEG + CELLS];
byte sec;			/* whose section runs on the CPU */
bool pool[4];			/* objects in the arena */
byte starts = STARTS;
bool hand[4];			/* ghost */
byte alone;			/* all others have stopped */

#define INROW(o) ((cur > BEG && mem[BEG] == o) + \
	(cur > BEG + 1 && mem[BEG + 1] == o))
#ifdef OBJ3			/* a third object, for thread 2 */
#define THIRD	(hand[3] + pool[3] + INROW(3) == 1)
#else
#define THIRD	true
#endif
#define ONCE	assert(hand[1] + pool[1] + INROW(1) == 1 && \
	hand[2] + pool[2] + INROW(2) == 1 && THIRD)
#define GET(o)	assert(o && !hand[o]); hand[o] = 1
#define PUT(o)	assert(hand[o]); hand[o] = 0
#define RUN	(!alone || alone == me)
#define IN	sec == me && RUN
#define OUT	!(IN)

proctype owner(byte me)
{
	byte a, b;		/* objects in hand */
	byte c, x, y, g;

next:
	atomic { RUN; c = 0; x = 0; y = 0; g = 0;
		if :: sec == me -> sec = 0 :: else fi }
	if
	:: atomic { RUN && a == 0 -> sec = me; c = cur };	/* pop */
	   if
	   :: atomic { IN && c > beg -> x = mem[c - 1] }
	   :: atomic { IN && c <= beg -> goto slow }
	   :: atomic { OUT -> goto next }
	   fi;
	   if
	   :: atomic { IN -> cur = c - 1; sec = 0; GET(x); a = x; ONCE }
	   :: atomic { OUT -> goto next }
	   fi
	:: atomic { RUN && a != 0 -> sec = me; c = cur };	/* push */
	   if
	   :: atomic { IN && c < end_ -> mem[c] = a }
	   :: atomic { IN && c >= end_ -> goto slow }
	   :: atomic { OUT -> goto next }
	   fi;
	   if
	   :: atomic { IN -> cur = c + 1; sec = 0; PUT(a); a = 0; ONCE }
	   :: atomic { OUT -> goto next }
	   fi
#ifdef BATCH
	:: atomic { RUN && a && b -> sec = me; c = cur };	/* refill */
	   if
	   :: atomic { IN && c + 2 <= end_ -> mem[c] = a }
	   :: atomic { IN && c + 2 > end_ -> goto slow }
	   :: atomic { OUT -> goto next }
	   fi;
#ifdef REFILLEARLY
	   if
	   :: atomic { IN -> cur = c + 2 }
	   :: atomic { OUT -> goto next }
	   fi;
#endif
	   if
	   :: atomic { IN -> mem[c + 1] = b }
	   :: atomic { OUT -> goto next }
	   fi;
	   if
	   :: atomic { IN -> cur = c + 2; sec = 0; PUT(a); PUT(b);
		a = 0; b = 0; ONCE }
	   :: atomic { OUT -> goto next }
	   fi
	:: atomic { RUN && !a && !b -> sec = me; c = cur };	/* flush */
	   if
#ifdef FLUSHWRAP			/* c - 2 compared, not c > beg first */
	   :: atomic { IN && c >= 2 -> x = mem[c - 1] }
	   :: atomic { IN && c < 2 -> goto slow }
#else
	   :: atomic { IN && c > beg && c >= beg + 2 -> x = mem[c - 1] }
	   :: atomic { IN && !(c > beg && c >= beg + 2) -> goto slow }
#endif
	   :: atomic { OUT -> goto next }
	   fi;
#ifdef FLUSHLATE
	   if
	   :: atomic { IN -> cur = c - 2; sec = 0 }
	   :: atomic { OUT -> goto next }
	   fi;
	   atomic { RUN; y = mem[c - 2]; GET(x); GET(y); a = x; b = y; ONCE };
#else
	   if
	   :: atomic { IN -> y = mem[c - 2] }
	   :: atomic { OUT -> goto next }
	   fi;
	   if
	   :: atomic { IN -> cur = c - 2; sec = 0; GET(x); GET(y);
		a = x; b = y; ONCE }
	   :: atomic { OUT -> goto next }
	   fi;
#endif
#endif
	:: atomic { RUN && a == 0 && pool[1] ->		/* arena */
		pool[1] = 0; a = 1; GET(1) }
	:: atomic { RUN && a == 0 && pool[2] ->
		pool[2] = 0; a = 2; GET(2) }
#ifdef OBJ3
	:: atomic { RUN && a == 0 && me == 2 && pool[3] ->
		pool[3] = 0; a = 3; GET(3) }
#endif
#ifdef BATCH
	:: atomic { RUN && a == 0 && b -> a = b; b = 0 }
	:: atomic { RUN && a == 1 && b == 0 && pool[2] ->
		pool[2] = 0; b = 2; GET(2) }
#endif
#ifdef RESIZE
	:: atomic { RUN -> goto slow }
#endif
#ifdef STUCK
	:: atomic { me == 1 && !alone -> alone = me; goto slow }
#endif
	fi;
	goto next;

	/* set_capacity in cpu_cache.c */
slow:
	atomic { RUN; if :: sec == me -> sec = 0 :: else fi; g = gen };
	if
	:: atomic { RUN && PHASE(g) == VIRGIN };
#ifndef VIRGINOPEN
	   atomic { RUN;		/* closed before cur is above beg */
		if
		:: end_ == 0 && beg == 0 -> beg = NEVER
		:: else
		fi };
#endif
#ifdef VIRGINTWO
	   atomic { RUN;
		if :: gen == 0 -> gen = 4 + OPEN :: else -> goto next fi };
	   atomic { RUN; cur = BEG; g = 4 + OPEN }
#else
	   atomic { RUN;
		if
		:: gen == 0 && cur == 0 -> cur = BEG; gen = 4 + OPEN; g = gen
		:: else -> goto next
		fi }
#endif
	:: atomic { RUN && PHASE(g) == OPEN }
	:: atomic { RUN && PHASE(g) > OPEN };
#ifdef NOCANCEL
	   atomic { RUN; if :: PHASE(g) == STOPPING -> goto lost :: else fi };
#endif
	   atomic { RUN;
		if
#ifdef NOEPOCH
		:: gen == g -> gen = (g & ~3) + OPEN; g = gen
#else
		:: gen == g -> gen = NEXT(g); g = gen
#endif
		:: else -> goto next
		fi }
	fi;
#ifdef CHECKBEFORE
	atomic { RUN; if :: gen == g -> skip :: else -> goto next fi };
	atomic { RUN; end_ = FULL; beg = BEG };
#else
	atomic { RUN; sec = me;
		if :: gen == g -> skip :: else -> goto next fi };
	if
	:: atomic { IN -> end_ = FULL; beg = BEG; sec = 0 }
#ifdef RESIZE
	:: atomic { IN -> end_ = BEG + 1; beg = BEG; sec = 0 }
#endif
	:: atomic { OUT -> goto next }
	fi;
#endif
#ifdef NOCANCEL
lost:
#endif
	/* all others stopped: one slow path has opened the row */
	atomic { RUN; assert(!alone || (PHASE(gen) == OPEN && end_ > BEG));
		if :: alone -> goto done :: else -> goto next fi };
done:
	skip
}

/* D1 to D9 of cpu_cache.c; me is 3 or 4 */
proctype drainer(byte me)
{
	byte g, c, x, y;

next:
	atomic { RUN; c = 0; g = gen };
	if
#ifdef RESCUE
	:: atomic { me == 3 && !alone -> alone = me; goto next }
	:: atomic { alone == me && PHASE(g) == VIRGIN -> goto done }
#endif
	:: atomic { RUN && PHASE(g) == OPEN && (starts || alone) ->	/* D1 */
		if
		:: gen == g -> gen = g + 1; g = gen
		:: else -> goto next
		fi;
		if :: starts -> starts-- :: else fi }
#ifdef LEAVESTOPPED			/* to who has begun it */
	:: atomic { RUN && PHASE(g) == STOPPING -> goto emptied }
#elif defined(HELPSHORT)
	:: atomic { RUN && PHASE(g) == STOPPING -> goto close }
#elif defined(HELPCLOSED)
	:: atomic { RUN && PHASE(g) == STOPPING && !end_ -> goto shut }
	:: atomic { RUN && PHASE(g) == STOPPING && end_ }
#else
	:: atomic { RUN && PHASE(g) == STOPPING }	/* help: D2 to D5 */
#endif
#ifdef LEAVEDRAINED
	:: atomic { RUN && PHASE(g) == DRAINED -> goto emptied }
#else
	:: atomic { RUN && PHASE(g) == DRAINED -> goto take }
#endif
	:: atomic { RUN && gen != g -> goto next }
	fi;
#ifdef LOOKAGAIN
close:
	atomic { RUN; end_ = 0; beg = NEVER };
	atomic { RUN; sec = 0 };
	atomic { RUN; if :: end_ -> goto close :: else fi };
#else
#ifndef NOBARRIER1
	atomic { RUN; sec = 0 };				/* D2 */
#endif
	atomic { RUN; end_ = 0; beg = NEVER };			/* D3 */
#ifdef HELPCLOSED
shut:
#endif
#ifndef NOBARRIER2
	atomic { RUN; sec = 0 };				/* D4 */
#endif
#endif
#ifdef HELPSHORT
close:
#endif
#ifdef GENLATE
	atomic { RUN; g = gen; if :: PHASE(g) != STOPPING -> goto next :: else fi };
#endif
	atomic { RUN;						/* D5 */
		if
		:: gen == g -> gen = g + 1; g = gen
		:: else -> goto next
		fi };
take:
	atomic { RUN; g = gen; c = cur;				/* D6 */
		if
#ifdef ANYPHASE
		:: c > BEG
#else
		:: PHASE(g) == DRAINED && c > BEG
#endif
		:: else -> goto emptied
		fi };
#ifndef CASFIRST
	atomic { RUN; x = mem[c - 1] };				/* D7 */
#ifdef TAKE2
	atomic { RUN; if :: c - 1 > BEG -> y = mem[c - 2] :: else fi };
#endif
#endif
	atomic { RUN;						/* D8 */
		if
#ifdef CURONLY
		:: cur == c ->
#else
		:: gen == g && cur == c ->
#endif
#ifdef CASFIRST
			cur = c - 1
#else
			cur = c - 1 - (y != 0); GET(x);
			if :: y -> GET(y) :: !y fi; ONCE
#endif
		:: else -> x = 0; y = 0; goto take
		fi };
#ifdef CASFIRST
	atomic { RUN; x = mem[c - 1]; GET(x); ONCE };
#endif
	atomic { RUN; PUT(x); pool[x] = 1; x = 0;		/* D9 */
		if :: y -> PUT(y); pool[y] = 1; y = 0 :: !y fi;
		goto take };
emptied:
	atomic { RUN; assert(!alone || (PHASE(gen) == DRAINED && cur <= BEG));
		if :: alone -> goto done :: else -> goto next fi };
done:
	skip
}

init {
	atomic {
#ifdef OPENED
		mem[BEG] = 1; mem[BEG + 1] = 2;
#else
		pool[1] = 1; pool[2] = 1;
#endif
#ifdef OBJ3
		pool[3] = 1;
#endif
		run owner(1);
#ifndef ONEOWNER
		run owner(2);
#endif
#if DRAINERS > 0
		run drainer(3);
#endif
#if DRAINERS > 1
		run drainer(4)
#endif
	}
}
