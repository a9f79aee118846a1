/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks.pml - chunks whose memory a program gives and takes: free bits, ready
 * bits, the map from addresses to chunks.
 *
 * A user claims a chunk and then reads whether it is ready.  If not, the
 * program gives an address, which the map takes by compare-and-swap, and the
 * chunk is ready.  A block lives there; who frees it finds its chunk by the map.
 * A leaver claims a chunk; if it is ready then, he drops the address from the
 * map, offers the memory, and if it is taken the chunk is not ready any more
 * when it is put.  The program gives what it was given back, at once.
 *
 * -DTWICE: the program gives addresses that it has given already, too.
 * -DPAGES: pages of one chunk instead.  Of two, one goes to the program while
 * it is in hand, the other is freed: who comes last sees that none is left.
 */
#ifndef NP
#define NP	3
#endif
#ifndef OPS
#define OPS	2
#endif
#define CHUNKS	2
#define ADDRS	2
#define LIVE	!dead[me]

byte free = 3;			/* chunks; pages */
byte ready;
byte away[CHUNKS];		/* address + 1 */
byte map[ADDRS];		/* chunk + 1 */
byte given;			/* ghost: addresses that eddy has */
byte absent, hand;		/* pages */
byte left;			/* ghost: times that a chunk left */
bool dead[NP], ended[NP];

#define BIT(x)	(1 << (x))
#define HAS(w, x) ((w) & BIT(x))
#ifdef TWICE
#define OURS(c, a) (map[a] == c + 1)	/* what it took it may give again */
#else
#define OURS(c, a) (map[a] == c + 1 && HAS(given, a))
#endif

proctype user(byte me, n)
{
	byte c, a, r, seen;

next:
	atomic { LIVE; r = 0; a = 0; c = 0; seen = ready;
		if
		:: n == 0 -> ended[me] = 1; goto out
		:: n > 0 -> n--
		fi;
		if :: c = 0 :: c = 1 fi }
	/* Claim, then read what was claimed. */
	atomic { LIVE;
		if
		:: HAS(free, c) -> free = free & ~BIT(c)
		:: !HAS(free, c) -> goto next
		fi }
	atomic { LIVE;
#ifdef READYSTALE
		r = HAS(seen, c);
#else
		r = HAS(ready, c);
#endif
		if
		:: r -> a = away[c] - 1;
			assert(OURS(c, a)); goto LIVES
		:: !r
		fi }
	/* The program's answer. */
	atomic { LIVE;
		if
		:: !HAS(given, 0) -> a = 0; given = given | 1
		:: !HAS(given, 1) -> a = 1; given = given | 2
#ifdef TWICE
		:: HAS(given, 0) -> a = 0
		:: HAS(given, 1) -> a = 1
#else
		:: given == 3 -> goto GIVEUP
#endif
		fi }
	atomic { LIVE;
#ifndef TWICE
		assert(map[a] == 0);	/* what is given is free */
#endif
#ifdef BLINDKNOW
		map[a] = c + 1
#else
		if
		:: map[a] == 0 -> map[a] = c + 1
		:: map[a] != 0 -> goto GIVEUP
		fi
#endif
	}
	atomic { LIVE; given = given | BIT(a); away[c] = a + 1 }
	atomic { LIVE; ready = ready | BIT(c) }
LIVES:
	/* A block lives; somebody frees it by its address. */
	atomic { LIVE; assert(OURS(c, a)) }
	atomic { LIVE; assert(OURS(c, a));
		 c = map[a] - 1 }
GIVEUP:
	atomic { LIVE; assert(!HAS(free, c)); free = free | BIT(c); goto next }
out:
	skip
}

proctype leaver(byte me, n)
{
	byte c, a, seen;

next:
	atomic { LIVE; a = 0; c = 0; seen = ready;
		if
		:: n == 0 -> ended[me] = 1; goto out
		:: n > 0 -> n--
		fi;
		if :: c = 0 :: c = 1 fi }
	atomic { LIVE;
		if
		:: HAS(free, c) -> free = free & ~BIT(c)
		:: !HAS(free, c) -> goto next
		fi }
	atomic { LIVE;
		if
		:: HAS(ready, c) -> a = away[c] - 1;
			assert(OURS(c, a))
		:: !HAS(ready, c) -> goto PUT
		fi }
#ifndef DROPLATE
	atomic { LIVE; assert(map[a] == c + 1); map[a] = 0 }
#endif
#ifdef PUTFIRST
	atomic { LIVE; free = free | BIT(c) }
#endif
	atomic { LIVE;
		if
		:: given = given & ~BIT(a)	/* taken */
		:: skip -> goto REFUSED
		fi }
#ifdef DROPLATE
	atomic { LIVE; map[a] = 0 }
#endif
#ifndef READYKEPT
	atomic { LIVE; away[c] = 0; ready = ready & ~BIT(c) }
#endif
#ifdef PUTFIRST
	goto next;
#endif
PUT:
	atomic { LIVE; assert(!HAS(free, c)); free = free | BIT(c); goto next }
REFUSED:
#ifdef DROPLATE
	goto PUT;
#endif
	atomic { LIVE;
		if
		:: map[a] == 0 -> map[a] = c + 1; goto PUT
		/* Another was told the same: it is his. */
		:: map[a] != 0 -> away[c] = 0; ready = ready & ~BIT(c);
			goto PUT
		fi }
out:
	skip
}

/* ---- pages ---- */

inline settle()
{
	atomic { LIVE; f = free; b = absent;
		if
		:: (f | b) != 3 || b == 0 -> goto done
		:: else
		fi }
	/* Takes what is free, or nothing. */
	atomic { LIVE;
		if
		:: (free & f) == f -> free = free & ~f
		:: else -> goto done
		fi }
	atomic { LIVE;
		if
		:: (f | absent) == 3 -> left++; absent = 0
		:: else -> free = free | f
		fi }
}

/* Page 0 goes to the program. */
proctype giver(byte me)
{
	byte f, b;

#ifdef LOOKFIRST
	atomic { LIVE; f = free };
	atomic { LIVE; absent = absent | 1; b = absent };
	atomic { LIVE; if :: (f | b) != 3 -> goto done :: else fi };
#else
	atomic { LIVE; absent = absent | 1 };
#endif
	settle();
done:
	atomic { LIVE; ended[me] = 1 }
}

/* Page 1 is freed, and claimed, and freed again. */
proctype freer(byte me; byte n)
{
	byte f, b;

again:
#ifdef LOOKBEFORE
	atomic { LIVE; b = absent };
	atomic { LIVE; free = free | 2; f = free };
	atomic { LIVE; if :: (f | b) != 3 -> goto done :: else fi };
#else
	atomic { LIVE; free = free | 2 };
#endif
	settle();
done:
	atomic { LIVE;
		if
		:: n == 0 || left != 0 || !HAS(free, 1) -> ended[me] = 1
		:: n > 0 && left == 0 && HAS(free, 1) ->
			free = free & ~2; n--; goto again
		fi }
}

proctype killer()
{
	byte v;
	if
	:: skip
#ifdef KILL
	:: atomic { select (v : 0 .. NP - 1);
		if :: !ended[v] -> dead[v] = 1 :: else fi }
#endif
	fi
}

#define OVER(v)	(ended[v] || dead[v])

init {
	atomic {
#ifdef PAGES
		free = 0;
		run giver(0); run freer(1, 1); ended[2] = 1;
#else
		run user(0, OPS); run user(1, OPS); run leaver(2, OPS);
#endif
		run killer()
	}
	atomic {
		if
		:: OVER(0) && OVER(1) && OVER(2) -> skip
		:: timeout -> assert(false)
		fi;
#ifdef PAGES
		if
		:: dead[0] || dead[1] -> skip
		:: else -> assert(left == 1)
		fi
#else
		/* Nothing is lost but by the dead; no two have one address. */
		if
		:: dead[0] || dead[1] || dead[2] -> skip
		:: else -> assert(free == 3)
		fi;
		if
		:: ready == 3 && free == 3 -> assert(away[0] != away[1])
		:: else
		fi
#endif
	}
}
