/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * urcu.pml - deferred frees: an open batch on a lane, closed ones on a stack, a
 * helper that takes them, waits for a grace period, frees, and sleeps.
 *
 * put: load the lane; look for an empty place, compare-and-swap it; none: open
 * a free batch with the object in it, compare-and-swap the lane, close what was
 * there (or the own one, if another was faster) and push it; then see whether
 * the helper sleeps.  close: each empty place is filled, one by one, by
 * compare-and-swap.  The helper sweeps the lane, takes the stack, waits until
 * a section that has begun has ended, marks each place before it frees what is
 * there, and makes the batches free with their places as they are.  Stacks are
 * one step each: ring.pml has the tags.  The lane is compared without its tag: a
 * batch that came back is closed early, no more.
 *
 * A reader holds an object that it could reach when its section began or later;
 * putters take it out of reach first.  No object is freed while it is held, or
 * twice; at the end all is freed but what lies in the batch in a dead hand.
 * FORK: a child, at any moment, finds each object that is handed over and not
 * freed in one place, but for the one that is being freed, and none that is.
 */
#define PLACES	2
#ifndef ND
#define ND	3		/* batches 1 .. ND */
#endif
#ifndef NO
#define NO	4		/* objects 1 .. NO: odd ones are putter 0's */
#endif
#define CLOSED	15
#define LIVE	!dead[me]
#define AT(d, i) place[(d) * PLACES + (i)]

byte place[8];			/* (ND + 1) * PLACES */
byte lane;
bool pushed[4], taken[4], unused[4];
bool asleep;

bool gone[5];			/* out of readers' reach */
byte holds, section;		/* of the reader: what; how many have begun */
bool in;

/* ghosts */
bool handed[5], freed[5], dead[2], ended[2];
byte own[4];			/* in whose hand, + 1 */
byte freeing;			/* by the helper, just now */

inline close(d)
{
	i = 0;
	do
	:: atomic { LIVE && i < PLACES ->
#ifndef NOCLOSE
		if :: AT(d, i) == 0 -> AT(d, i) = CLOSED :: else fi;
#endif
		i++ }
	:: atomic { LIVE && i == PLACES -> break }
	od
}

proctype putter(byte me)
{
	byte o = me + 1, b, d, i, old;
	bool woke;

next:
	atomic { LIVE; b = 0; d = 0; i = 0; old = 0;
		if :: o > NO -> o = 0; ended[me] = 1; goto out :: o <= NO fi }
	atomic { LIVE; gone[o] = 1 }
#ifdef WAKEFIRST
	atomic { LIVE; woke = asleep }
#endif
	atomic { LIVE; b = lane; if :: b == 0 -> goto SLOW :: b fi }
PROBE:
	atomic { LIVE;
		if
		:: i == PLACES -> goto SLOW
		:: i < PLACES && AT(b, i) != 0 -> i++; goto PROBE
		:: i < PLACES && AT(b, i) == 0
		fi }
	atomic { LIVE;
#ifdef BLINDPUT
		AT(b, i) = o; handed[o] = 1; goto SEE }
#else
		if
		:: AT(b, i) == 0 -> AT(b, i) = o; handed[o] = 1; goto SEE
		:: else -> i++; goto PROBE
		fi }
#endif
SLOW:
	atomic { LIVE;
		if
		:: unused[1] -> d = 1
		:: unused[2] -> d = 2
		:: unused[3] -> d = 3
		:: else -> ended[me] = 1; goto out	/* no memory */
		fi;
		unused[d] = 0; own[d] = me + 1; i = 1 }
#ifndef OPENLATE
	atomic { LIVE; AT(d, 0) = o }
	do
	:: atomic { LIVE && i < PLACES -> AT(d, i) = 0; i++ }
	:: atomic { LIVE && i == PLACES -> break }
	od;
#endif
	atomic { LIVE; handed[o] = 1;
		if
		:: lane == b -> lane = d; own[d] = 0; old = b;
			if :: b -> own[b] = me + 1 :: !b fi
		:: else -> old = d
		fi }
#ifdef OPENLATE
	atomic { LIVE; AT(d, 0) = o; AT(d, 1) = 0 }
#endif
	if
	:: atomic { LIVE && old ->
#ifdef PUSHFIRST
		pushed[old] = 1; own[old] = 0 };
	   close(old)
#else
		skip };
	   close(old);
	   atomic { LIVE; pushed[old] = 1; own[old] = 0 }
#endif
	:: atomic { LIVE && !old -> skip }
	fi;
SEE:
	atomic { LIVE;
#ifdef WAKEFIRST
		if :: woke -> asleep = 0 :: else fi;
#else
		if :: asleep -> asleep = 0 :: else fi;
#endif
		o = o + 2; goto next }
out:
	skip
}

proctype helper()
{
	byte me = 2, b, d, i, begun;
	bool was, any;

again:
	atomic { me = 2; b = lane; was = 0; begun = 0; any = 0 }
	if
	:: atomic { b ->
		if
		:: lane == b -> lane = 0; own[b] = 3
		:: else -> b = 0
		fi }
	:: atomic { !b }
	fi;
	if
	:: b ->	i = 0;
		do
		:: atomic { i < PLACES ->
			if :: AT(b, i) == 0 -> AT(b, i) = CLOSED :: else fi;
			i++ }
		:: atomic { i == PLACES -> break }
		od;
		atomic { pushed[b] = 1; own[b] = 0 }
	:: !b
	fi;
#ifdef TAKELATE
	atomic { was = in; begun = section };
	if :: !was :: was && (!in || section != begun) fi;
#endif
	atomic { d = 1;
		do
		:: d <= ND ->
			if :: pushed[d] -> pushed[d] = 0; taken[d] = 1; any = 1
			:: else fi;
			d++
		:: d > ND -> d = 0; break
		od }
	if
	:: !any ->
#ifdef LOOKFIRST
		atomic { was = lane || pushed[1] || pushed[2] || pushed[3] };
		asleep = 1;
#else
		asleep = 1;
		atomic { was = lane != 0 };
		atomic { was = was || pushed[1] || pushed[2] || pushed[3] };
#endif
		if
		:: was -> asleep = 0
		:: !was -> !asleep
		fi;
		goto again
	:: any
	fi;
#ifndef TAKELATE
#ifndef NOGRACE
	/* The grace period. */
	atomic { was = in; begun = section };
	if :: !was :: was && (!in || section != begun) fi;
#endif
#endif
	d = 1;
	do
	:: d <= ND && !taken[d] -> d++
	:: d <= ND && taken[d] ->
		i = 0;
		do
		:: atomic { i < PLACES ->
			b = AT(d, i);
			if
			:: b == CLOSED
			:: b != CLOSED ->
				assert(b != 0);
				assert(!freed[b]);
				assert(holds != b);
#ifdef CLEARFREE
				AT(d, i) = 0;
#else
#ifndef MARKLATE
				AT(d, i) = CLOSED;
#endif
#endif
#ifndef FORK
				freed[b] = 1
			fi;
			i++ }
#else
				freeing = b
			fi }
		   atomic {
			if
			:: b == CLOSED
			:: b != CLOSED -> freed[b] = 1
			fi }
		   atomic {
#ifdef MARKLATE
			AT(d, i) = CLOSED;
#endif
			freeing = 0; b = 0; i++ }
#endif
		:: i == PLACES -> break
		od;
		atomic { taken[d] = 0; unused[d] = 1; d++ }
	:: d > ND -> break
	od;
	goto again
}

proctype reader()
{
	byte n = 2;

	do
	:: atomic { n && !in -> in = 1; section++; n-- }
	:: atomic { in && !holds ->
		if
		:: !gone[1] -> holds = 1
		:: !gone[2] -> holds = 2
		:: !gone[3] -> holds = 3
		:: else
		fi }
	:: atomic { in -> in = 0; holds = 0 }
	:: atomic { !n && !in -> break }
	od
}

proctype killer()
{
	if
	:: skip
#ifdef KILL
	:: atomic { !ended[0] -> dead[0] = 1 }
	:: atomic { !ended[1] -> dead[1] = 1 }
#endif
	fi
}

#ifdef FORK
#define IN(o)	((AT(1, 0) == o) + (AT(1, 1) == o) + (AT(2, 0) == o) + \
	(AT(2, 1) == o) + (AT(3, 0) == o) + (AT(3, 1) == o))
#define WHOLE(o) (IN(o) <= 1 && (!freed[o] || IN(o) == 0) && \
	(!handed[o] || freed[o] || freeing == o || IN(o) == 1))

proctype child()
{
	assert(WHOLE(1) && WHOLE(2) && WHOLE(3) && WHOLE(4))
}
#endif

/* In the batch of a dead hand. */
#define LOST(o)	((own[1] && (AT(1, 0) == o || AT(1, 1) == o)) || \
	(own[2] && (AT(2, 0) == o || AT(2, 1) == o)) || \
	(own[3] && (AT(3, 0) == o || AT(3, 1) == o)))
#define KEPT(o)	(!handed[o] || freed[o] || ((dead[0] || dead[1]) && LOST(o)))
/* A dead thread may not have seen that the helper sleeps. */
#define OWED	((dead[0] || dead[1]) && asleep)

init {
	atomic {
		unused[1] = 1; unused[2] = 1; unused[3] = (ND > 2);
		run putter(0); run putter(1); run helper(); run reader();
		run killer();
#ifdef FORK
		run child()
#endif
	}
	atomic {
		timeout ->
		assert((ended[0] || dead[0]) && (ended[1] || dead[1]));
		assert(OWED || (KEPT(1) && KEPT(2) && KEPT(3) && KEPT(4)))
	}
}
