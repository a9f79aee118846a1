// SPDX-License-Identifier: BSD-2-Clause
//
// good_vector.cc - good_vector beside std::vector: push_back of N numbers,
// again and again; ns for each, bytes that blocks have and the vector does not
// use as room, and bytes that were copied.
//
//     c++ -std=c++17 -O2 -I../include good_vector.cc -leddy
//     ./a.out [ms]
#include "good_vector.hpp"

#include <malloc.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <vector>

namespace
{

using clock_type = std::chrono::steady_clock;
using element = std::uint64_t;

// What a vector lost and moved on its way to n.
struct cost {
	std::size_t lost = 0;   // bytes of its last block that are no room
	std::size_t copied = 0; // bytes, in blocks that changed their place
	unsigned blocks = 0;    // that it had
};

template <class V>
cost
trace(std::size_t n)
{
	cost c;
	V v;
	const void *before = nullptr;
	std::size_t room = 0;

	for (std::size_t i = 0; i < n; i++) {
		v.push_back(i);
		if (v.capacity() == room)
			continue;
		c.blocks++;
		if (v.data() != before)
			c.copied += (v.size() - 1) * sizeof(element);
		room = v.capacity();
		before = v.data();
	}
	c.lost = malloc_usable_size(v.data()) - room * sizeof(element);
	return c;
}

template <class V>
double
ns_each(std::size_t n, int ms)
{
	auto begin = clock_type::now();
	auto end = begin + std::chrono::milliseconds(ms);
	std::uint64_t done = 0;
	auto now = begin;

	do {
		V v;

		for (std::size_t i = 0; i < n; i++)
			v.push_back(i);
		if (v[n - 1] != n - 1)
			std::abort();
		done += n;
		now = clock_type::now();
	} while (now < end);
	return std::chrono::duration<double, std::nano>(now - begin).count() /
	       static_cast<double>(done);
}

} // namespace

int
main(int argc, char **argv)
{
	using plain = std::vector<element>;
	using good = example::good_vector<element>;
	int ms = argc > 1 ? std::atoi(argv[1]) : 300;

	std::printf("%10s %8s %8s %7s %7s %8s %8s %11s %11s\n", "N", "std ns",
	    "good ns", "blocks", "good", "lost", "good", "copied", "good");
	for (std::size_t n :
	    {10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u}) {
		cost a = trace<plain>(n);
		cost b = trace<good>(n);

		// In turns: what comes first would warm the memory.
		double x = ns_each<plain>(n, ms / 2);
		double y = ns_each<good>(n, ms / 2);

		y = (y + ns_each<good>(n, ms / 2)) / 2;
		x = (x + ns_each<plain>(n, ms / 2)) / 2;
		std::printf("%10zu %8.2f %8.2f %7u %7u %8zu %8zu %11zu %11zu\n",
		    n, x, y, a.blocks, b.blocks, a.lost, b.lost, a.copied,
		    b.copied);
	}
	return 0;
}
