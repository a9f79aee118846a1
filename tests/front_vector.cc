// SPDX-License-Identifier: BSD-2-Clause
// front_vector.cc - the vector of examples/ that grows by good sizes, and
// allocators of a lifetime.
#include "good_vector.hpp"

#include <eddy/eddy.hpp>

#include <malloc.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

static int n_tests;

static void
ok(bool held, const char *what)
{
	std::printf("%s %d - %s\n", held ? "ok" : "not ok", ++n_tests, what);
	std::fflush(stdout);
}

static void
numbers()
{
	example::good_vector<std::uint32_t> v;
	bool all_used = true;
	bool held = true;

	for (std::uint32_t i = 0; i < 3000000; i++) {
		std::size_t room = v.capacity();

		v.push_back(i ^ 0x5555u);
		if (v.capacity() != room)
			all_used &= malloc_usable_size(v.data()) -
					v.capacity() * sizeof(std::uint32_t) <
				    sizeof(std::uint32_t);
	}
	for (std::uint32_t i = 0; i < 3000000; i++)
		held &= v[i] == (i ^ 0x5555u);
	ok(held && v.size() == 3000000, "numbers stay what they are");
	ok(all_used, "nothing of a block is lost");
	for (int i = 0; i < 100; i++)
		v.push_back(v[0]);
	ok(v[3000050] == v[0], "an element of its own is added");
}

// Text that points into itself, so that its bytes must not be moved.
static void
strings()
{
	example::good_vector<std::string> v;
	example::good_vector<std::unique_ptr<int>> w;
	bool held = true;

	for (int i = 0; i < 20000; i++) {
		v.push_back(std::to_string(i));
		if (i % 1000 == 0)
			v.push_back(v[v.size() / 2]);
		w.push_back(std::make_unique<int>(i));
	}
	for (int i = 0; i < 20000; i++)
		held &= *w[static_cast<std::size_t>(i)] == i;
	held &= v[0] == "0" && v[v.size() - 1] == "19999";
	v.pop_back();
	example::good_vector<std::string> moved(std::move(v));
	held &= moved[moved.size() - 1] == "19998" && v.size() == 0;
	v = std::move(moved);
	held &= v[v.size() - 1] == "19998";
	ok(held, "strings and owners move one by one, or as bytes");
}

static unsigned
arena_at(const void *p)
{
	unsigned index = 0;
	std::size_t n = sizeof index;

	if (mallctl("arenas.lookup", &index, &n, &p, sizeof p) != 0)
		return 0;
	return index + 1;
}

static void
lifetimes()
{
	using brief = eddy::hint_allocator<int, eddy::lifetime::short_lived>;
	using lasting = eddy::hint_allocator<int, eddy::lifetime::long_lived>;
	struct alignas(128) wide {
		char c[128];
	};
	std::vector<int, brief> a;
	std::vector<int, lasting> b;
	std::map<int, int, std::less<int>,
	    eddy::hint_allocator<std::pair<const int, int>,
		eddy::lifetime::long_lived>>
	    m;
	std::vector<wide,
	    eddy::hint_allocator<wide, eddy::lifetime::long_lived>>
	    w(3);
	void *s = eddy_alloc_short(100);
	void *l = eddy_alloc_long(100);
	auto room = lasting().allocate_at_least(1001);

	for (int i = 0; i < 10000; i++) {
		a.push_back(i);
		b.push_back(i);
		m[i] = i;
	}
	ok(arena_at(a.data()) == arena_at(s) &&
		arena_at(b.data()) == arena_at(l) &&
		arena_at(&m[5]) == arena_at(l) &&
		arena_at(w.data()) == arena_at(l),
	    "containers of a lifetime lie with its blocks");
	ok(reinterpret_cast<std::uintptr_t>(w.data()) % 128 == 0,
	    "aligned as their elements");
	ok(malloc_usable_size(room.ptr) / sizeof(int) == room.count &&
		room.count >= 1001 && arena_at(room.ptr) == arena_at(l),
	    "allocate_at_least tells what there is");
	ok(a.get_allocator() == brief() && !(a.get_allocator() != brief()),
	    "allocators of one lifetime are equal");
	lasting().deallocate(room.ptr, room.count);
	std::free(s);
	std::free(l);
}

int
main()
{
	numbers();
	strings();
	lifetimes();
	std::printf("1..%d\n", n_tests);
	return 0;
}
