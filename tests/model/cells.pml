/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cells.pml - a row of claim mode: every cell stands alone.
 *
 * put: load a cell, 0 -> compare-and-swap 0 to the object; get: load, not 0
 * -> exchange with 0; a sweeper exchanges every cell, while all others go on.
 * The hint only says where to begin.  Every operation ends after one probe of
 * each cell, whatever others do or stop doing.
 */
#define CELLS	2
#ifndef OPS
#define OPS	3
#endif
#define NP	3
#define LIVE	!dead[me]

byte cell[CELLS], hint;
bool hand[4];			/* ghost: out of the row, in one thread's hand */
bool dead[NP], ended[NP];
hidden byte hi;

#define PLACES(o) (hand[o] + (cell[0] == o) + (cell[1] == o))

inline once()
{
	assert(PLACES(1) == 1 && PLACES(2) == 1 && PLACES(3) == 1)
}

proctype worker(byte me, a, n)	/* a: the object in its hand, or 0 */
{
	byte h, x, k;

next:
	atomic { LIVE; x = 0; k = 0;
		if
		:: n == 0 -> h = 0; a = 0; ended[me] = 1; goto out
		:: n > 0 -> n--; h = hint
		fi }
PROBE:
	atomic { LIVE;
		if
		:: k == CELLS -> goto next	/* miss, or overflow */
		:: k < CELLS && (cell[h] == 0) == (a != 0) -> skip
		:: k < CELLS && (cell[h] == 0) == (a == 0) ->
			h = (h + 1) % CELLS; k++; goto PROBE
		fi }
	if
	:: atomic { LIVE && a ->
#ifdef BLINDPUT
		cell[h] = a; hand[a] = 0; a = 0; once() }
#else
		if
		:: cell[h] == 0 -> cell[h] = a; hand[a] = 0; a = 0; once()
		:: cell[h] != 0 -> h = (h + 1) % CELLS; k++; goto PROBE
		fi }
#endif
#ifdef LOADSTORE
	:: atomic { LIVE && !a -> x = cell[h] };
	   atomic { LIVE; cell[h] = 0;
#else
	:: atomic { LIVE && !a -> x = cell[h]; cell[h] = 0;
#endif
		if
		:: x -> assert(!hand[x]); hand[x] = 1; a = x; x = 0; once()
		:: !x -> h = (h + 1) % CELLS; k++; goto PROBE
		fi }
	fi;
	atomic { LIVE; hint = h; goto next }
out:
	skip
}

proctype sweeper(byte me)
{
	byte h, x;

	do
	:: atomic { LIVE && h < CELLS ->
#ifdef SWEEPCOPY
		x = cell[h] };
	   atomic { LIVE; cell[h] = 0;
#else
		x = cell[h]; cell[h] = 0;
#endif
		if :: x -> assert(!hand[x]); hand[x] = 1; once()
		:: !x
		fi;
		x = 0; h++ }
	:: atomic { LIVE && h == CELLS -> ended[me] = 1; break }
	od
}

proctype killer()
{
	byte v;
	if
	:: skip
	:: atomic { select (v : 0 .. NP - 1);
		if :: !ended[v] -> dead[v] = 1 :: else fi }
	fi
}

init {
	atomic {
		cell[0] = 1; hand[2] = 1; hand[3] = 1;
		if :: hint = 0 :: hint = 1 fi;
		run worker(0, 2, OPS); run worker(1, 3, OPS); run sweeper(2);
		run killer()
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[1] || dead[1]) &&
		   (ended[2] || dead[2]) -> skip
		:: timeout -> assert(false)
		fi;
		once()
	}
}
