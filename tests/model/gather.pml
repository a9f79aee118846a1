/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gather.pml - who calls home what is parked elsewhere, once a second.
 *
 * An arena that has grown is noticed by the next slow path that compares the
 * count of its chunks with the count noted before.  If the last gather was not
 * in this second, whoever moves the stamp on by compare-and-swap gathers.
 *
 * At most one gather a second begins.  After a growth one begins, or has begun
 * in the same second, unless whoever was to begin it is dead (-DKILL=1, at any
 * step): and then the next thread that looks does it.  README.md lists the
 * mutants.
 */
#ifndef NP
#define NP	2
#endif
#ifndef LOOKS
#define LOOKS	2		/* of each worker */
#endif
#define SECONDS	3
#define LIVE	!dead[me]

byte clock = 1, stamp = 1;
byte grown, noted;
byte busy;			/* mutant FLAG */
bool dead[NP], ended[NP];

/* ghosts */
byte begun, in[SECONDS + 1];

proctype worker(byte me)
{
	byte g, last, now, k = LOOKS, before, second;

next:
	atomic { LIVE; g = 0; last = 0; now = 0;
		if
		:: !k -> ended[me] = 1; goto out
		:: k -> k--; grown++; before = begun; second = clock
		fi };
	atomic { LIVE; g = grown };
	atomic { LIVE; if :: g == noted -> goto done :: else fi };
#ifdef NOTEFIRST
	atomic { LIVE; noted = g };
#endif
#ifdef CLOCKFIRST
	atomic { LIVE; now = clock };
	atomic { LIVE; last = stamp };
#else
	atomic { LIVE; last = stamp };
	atomic { LIVE; now = clock };
#endif
#ifdef FLAG				/* nobody else while it is set */
	atomic { LIVE; if :: busy -> goto done :: else -> busy = 1 fi };
#endif
	if
	:: atomic { LIVE && now == last };
	   atomic { LIVE; noted = g };
#ifdef FLAG
	   atomic { LIVE; busy = 0 };
#endif
	   goto done
	:: atomic { LIVE && now != last }
	fi;
#ifdef FLAG
	atomic { LIVE; stamp = now; begun++; in[now]++ };
#elif defined(BLINDSTAMP)
	atomic { LIVE; stamp = now; begun++; in[now]++; assert(in[now] == 1) };
#else
	atomic { LIVE;
		if
		:: stamp != last -> goto done
		:: stamp == last -> stamp = now; begun++; in[now]++;
			assert(in[now] == 1)
		fi };
#endif
	atomic { LIVE; noted = g };
#ifdef FLAG
	atomic { LIVE; busy = 0 };
#endif
done:
	atomic { LIVE; assert(begun > before || stamp >= second); goto next };
out:
	skip
}

proctype time()
{
	do
	:: atomic { clock < SECONDS -> clock++ }
	:: atomic { clock == SECONDS -> break }
	od
}

#ifdef KILL
proctype killer()
{
	byte v;

	select (v : 0 .. NP - 1);
	if :: atomic { !ended[v] -> dead[v] = 1 } :: true fi;
	v = 0
}
#endif

init {
	atomic {
		in[1] = 1;
		run time();
		run worker(0); run worker(1);
#if NP == 3
		run worker(2);
#endif
#ifdef KILL
		run killer()
#endif
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[1] || dead[1]) &&
		   (ended[NP - 1] || dead[NP - 1]) -> skip
		:: timeout -> assert(false)
		fi
	}
}
