/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * index.pml - three levels of hints above three members.
 *
 * F[i] stands for the free words of member i.  A[i] is its bit, B[w] the bit
 * of a word of A (members 0 and 1 share a word), C the bit of the word of B.
 * Setting goes from the bottom up and tests every level; clearing a level
 * looks again at the word below, and sets again from there up.
 */
#ifndef NP
#define NP	2
#endif
#ifndef GETS
#define GETS	1
#endif
#define LIVE	!dead[me]
#define WORD(i)	((i) >> 1)
#define BELOW(w) ((w) == 0 -> (A[0] || A[1]) : A[2])
#define MEMBERS(w) ((w) == 0 -> 3 : 4)

bool F[3], A[3], B[2], C;
byte holds[NP];			/* member + 1 */
byte owes[NP];			/* members that this worker must make found */
bool dead[NP], ended[NP];
hidden byte hi;

inline take_over(mask)
{
	d_step {
		for (hi : 0 .. NP - 1) { owes[hi] = owes[hi] & ~(mask) };
		owes[me] = mask; hi = 0
	}
}

proctype worker(byte me, n)
{
	byte s, w;

next:
	atomic { LIVE; owes[me] = 0; s = 0; w = 0;
		if
		:: holds[me] -> s = holds[me] - 1; goto PUT
		:: !holds[me] && n -> n--; goto GET
		:: n == 0 -> ended[me] = 1; goto out	/* may keep one */
		fi }

	/* eddy_idset_set, behind the put */
PUT:
#ifdef HINTFIRST
	atomic { LIVE; A[s] = 1 }
	atomic { LIVE; B[WORD(s)] = 1 }
	atomic { LIVE; C = 1 }
	atomic { LIVE; F[s] = 1; holds[me] = 0; goto next }
#endif
	atomic { LIVE; F[s] = 1; holds[me] = 0; take_over(1 << s) }
#if defined(TOPDOWN)
	atomic { LIVE; C = 1 }
	atomic { LIVE; B[WORD(s)] = 1 }
	atomic { LIVE; A[s] = 1; goto next }
#elif defined(STOPLOW)
	atomic { LIVE; if :: A[s] -> goto next :: else -> A[s] = 1 fi }
	atomic { LIVE; B[WORD(s)] = 1 }
	atomic { LIVE; C = 1; goto next }
#elif defined(STOPMID)
	atomic { LIVE; A[s] = 1 }
	atomic { LIVE;
		if
		:: B[WORD(s)] -> goto next
		:: else -> B[WORD(s)] = 1
		fi }
	atomic { LIVE; C = 1; goto next }
#else
	atomic { LIVE; A[s] = 1 }
	atomic { LIVE; B[WORD(s)] = 1 }
	atomic { LIVE; C = 1; goto next }
#endif

	/* eddy_idset_find */
GET:
	atomic { LIVE; if :: C -> skip :: else -> goto next fi }
	atomic { LIVE;
		if
		:: B[0] -> w = 0
		:: B[1] -> w = 1
		:: !B[0] && !B[1] -> goto TOP
		fi }
	atomic { LIVE;
		if
		:: w == 0 && A[0] -> s = 0
		:: w == 0 && A[1] -> s = 1
		:: w == 1 && A[2] -> s = 2
		:: !BELOW(w) -> goto MID
		fi }
	atomic { LIVE; if :: F[s] -> F[s] = 0; holds[me] = s + 1 :: else fi }

	/* eddy_idset_clear: nothing is left there, or so it seems */
#ifdef CLIMB			/* as idset.c: all levels, then the member */
	atomic { LIVE; A[s] = 0; owes[me] = 1 << s;
		if :: BELOW(w) -> goto MEMBER :: else fi }
	atomic { LIVE; B[w] = 0; owes[me] = MEMBERS(w) | (1 << s) }
	atomic { LIVE; if :: BELOW(w) -> skip :: else -> goto CLIMBTOP fi }
	atomic { LIVE; B[w] = 1 }
	atomic { LIVE; C = 1; goto MEMBER };
CLIMBTOP:
	atomic { LIVE; owes[me] = 1 << s;
		if :: B[0] || B[1] -> goto MEMBER :: else fi }
	atomic { LIVE; C = 0; owes[me] = 7 }
	atomic { LIVE; if :: B[0] || B[1] -> C = 1 :: else fi }
MEMBER:
	atomic { LIVE; owes[me] = 1 << s;
		if :: F[s] -> skip :: else -> goto next fi }
	atomic { LIVE; A[s] = 1 }
	atomic { LIVE; B[w] = 1 }
	atomic { LIVE; C = 1; goto next }
#endif
	atomic { LIVE; A[s] = 0; owes[me] = 1 << s }
#ifndef NORELOOKLOW
	atomic { LIVE; if :: F[s] -> skip :: else -> goto UP fi }
	atomic { LIVE; A[s] = 1 }
	atomic { LIVE; B[w] = 1 }
	atomic { LIVE; C = 1; goto next }
#endif
UP:
	atomic { LIVE; owes[me] = 0;
		if :: BELOW(w) -> goto next :: else fi }
MID:
	atomic { LIVE; B[w] = 0; owes[me] = MEMBERS(w) }
#ifndef NORELOOKMID
	atomic { LIVE; if :: BELOW(w) -> skip :: else -> goto UPPER fi }
	atomic { LIVE; B[w] = 1 }
#ifdef SETONE			/* set the level again, but not those above */
	atomic { LIVE; goto next }
#else
	atomic { LIVE; C = 1; goto next }
#endif
#endif
UPPER:
	atomic { LIVE; owes[me] = 0;
		if :: B[0] || B[1] -> goto next :: else fi }
TOP:
	atomic { LIVE; C = 0; owes[me] = 7 }
#ifndef NORELOOKTOP
	atomic { LIVE; if :: B[0] || B[1] -> C = 1 :: else fi }
#endif
	atomic { LIVE; goto next }
out:
	skip
}

#ifdef KILL
proctype killer()
{
	byte k = KILL, v;
	do
	:: k > 0 -> atomic {
		select (v : 0 .. NP - 1);
		if :: !ended[v] -> dead[v] = 1 :: else fi;
		k--; v = 0 }
	:: break
	od;
	k = 0
}
#endif

init {
	byte i, debt;

	atomic {
		holds[0] = 1; holds[1] = 2;
#if NP > 2
		holds[2] = 3;
#else
		if
		:: F[2] = 1; A[2] = 1; B[1] = 1; C = 1
		:: true
		fi;
#endif
		for (i : 0 .. NP - 1) { run worker(i, GETS) };
		i = 0;
#ifdef KILL
		run killer()
#endif
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[1] || dead[1]) &&
		   (ended[NP - 1] || dead[NP - 1]) -> skip
		:: timeout -> assert(false)
		fi;
		for (i : 0 .. NP - 1) {
			if :: dead[i] -> debt = debt | owes[i] :: else fi
		};
		for (i : 0 .. 2) {
			assert(!F[i] || (A[i] && B[WORD(i)] && C) ||
			    ((debt >> i) & 1))
		}
	}
}
