/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.pml - an allocation from a region that is entered, and the thread's
 * signal handlers, which allocate as well and may jump out.
 *
 * Memory is GRAINS grains; mark[i]: an object begins at i, or the next one will.
 * A mark of an earlier life is none here.
 * An allocation: busy; read top; write top; set the marks at both ends; not busy.
 * A handler that finds busy goes to the heap.  After a jump malloc is the heap's
 * until the thread leaves, which settles: top is marked, not busy.
 * A gap is what an alignment leaves in front.
 */
#define GRAINS	8
#define OBJECTS	4

bool mark[9], busy;
byte top;
byte from[OBJECTS], length[OBJECTS], n;	/* ghost: what was handed out */

inline check()
{
	d_step {
		i = 0;
		do
		:: i < n ->
			assert(mark[from[i]] && mark[from[i] + length[i]]);
			k = from[i] + 1;
			do
			:: k < from[i] + length[i] -> assert(!mark[k]); k++
			:: else -> break
			od;
			k = 0;
			do
			:: k < i -> assert(from[k] + length[k] <= from[i] ||
			    from[i] + length[i] <= from[k]); k++
			:: else -> break
			od;
			i++
		:: else -> break
		od;
		i = 0; k = 0
	}
}

inline hand_out()
{
	d_step {
		if
		:: n < OBJECTS -> from[n] = p; length[n] = size; n++
		:: else -> skip
		fi
	}
}

/* The steps of take() in lib/front/region_api.c; a handler may come before each
 * of them in the main program. */
#ifdef NOBUSY
#define TAKE_BUSY	skip
#else
#define TAKE_BUSY	busy = 1
#endif

chan interrupt = [0] of { bool };	/* the handler runs: 1 */
chan back = [0] of { bool };		/* and is over: whether it jumps */

inline maybe()
{
	if
	:: mine -> interrupt!1; back?jump
	:: true
	fi;
	if
	:: jump -> goto out
	:: else
	fi
}

inline steps()
{
	maybe(); TAKE_BUSY;
	maybe(); p = top + gap;
	if
	:: p + size <= GRAINS ->
#ifdef MARKSFIRST
		maybe(); if
		:: gap -> mark[p] = 1
		:: else
		fi;
		maybe(); mark[p + size] = 1;
		maybe(); top = p + size
#else
		maybe(); top = p + size;
		maybe(); if
		:: gap -> mark[p] = 1
		:: else
		fi;
		maybe(); mark[p + size] = 1
#endif
		;
		hand_out();
		maybe(); busy = 0
	:: else -> maybe(); busy = 0
	fi
}

active proctype program()
{
	byte p, size, gap, i, k, rounds;
	bool jump, mine = 1;

	mark[0] = 1;
	do
	:: rounds == 3 -> break
	:: rounds < 3 ->
		rounds++;
		select(size : 1 .. 2);
		select(gap : 0 .. 1);
		jump = 0;
		if
		:: busy			/* the heap's */
		:: else -> steps()
		fi;
out:
		if
		:: jump ->
			/* leave: lib/heap/region.c, eddy_region_settle */
#ifndef NOSETTLE
			if
			:: busy -> mark[top] = 1
			:: else -> skip
			fi;
#endif
			busy = 0
		:: else -> skip
		fi;
		check()
	od;
	interrupt!0
}

active proctype handler()
{
	byte p, size, gap;
	bool on, jump, mine;

	do
	:: interrupt?on;
		if
		:: !on -> break
		:: else -> skip
		fi;
		size = 1;
		gap = 0;
		if
		:: busy			/* the heap's */
		:: else -> steps()
		fi;
out:
		if
		:: back!0
		:: back!1
		fi
	od
}
