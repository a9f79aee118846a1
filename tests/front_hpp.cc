// SPDX-License-Identifier: BSD-2-Clause
// front_hpp.cc - <eddy/eddy.hpp>: arenas, resources and allocators.
#include <eddy/eddy.hpp>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <list>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>

static int n_tests;

static void
ok(bool held, const char *what)
{
	std::printf("%s %d - %s\n", held ? "ok" : "not ok", ++n_tests, what);
	std::fflush(stdout);
}

// The number of the arena that p lies in; 0: none.
static unsigned
arena_at(const void *p)
{
	unsigned index = 0;
	std::size_t n = sizeof index;

	if (mallctl("arenas.lookup", &index, &n, &p, sizeof p) != 0)
		return 0;
	return index + 1;
}

static std::size_t
resident_kib()
{
	std::ifstream f("/proc/self/statm");
	std::size_t all = 0;
	std::size_t resident = 0;

	f >> all >> resident;
	return resident * 4;
}

// Whether what was only read is resident as well: no common page of zeros.
static bool
reads_cost()
{
	const std::size_t size = std::size_t(4) << 20;
	std::size_t before = resident_kib();
	auto *p = static_cast<const volatile char *>(mmap(nullptr, size,
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	int sum = 0;

	if (p == MAP_FAILED)
		return false;
	for (std::size_t i = 0; i < size; i += 4096)
		sum += p[i];
	before = resident_kib() - before;
	munmap(const_cast<char *>(p), size);
	return sum == 0 && before > 2048;
}

struct alignas(256) wide {
	int v = 7;
};

static void
test_arena()
{
	unsigned number;
	void *p;

	{
		eddy::arena a;
		eddy::arena b = std::move(a);

		number = b.number();
		p = b.allocate(1000, 512);
		ok(a.number() == 0 && number != 0 && arena_at(p) == number &&
			reinterpret_cast<std::uintptr_t>(p) % 512 == 0,
		    "an arena moves, and its blocks are of it");
		b.reset();
		for (int i = 0; i < 1000; i++)
			p = b.allocate(100000);
	}
	ok(arena_at(p) == 0, "it ends with its owner, and its blocks with it");
	{
		eddy::arena c;

		ok(c.number() == number, "its number is the next one's");
	}
	bool thrown = false;

	try {
		eddy::arena d(1000);
	} catch (const std::system_error &e) {
		thrown = e.code().value() == EINVAL;
	}
	ok(thrown, "no such node: std::system_error");
}

// Kernel's flags of the mapping that p lies in.
static std::string
vm_flags(const void *p)
{
	std::ifstream f("/proc/self/smaps");
	const auto at = reinterpret_cast<std::uintptr_t>(p);
	std::string line;
	bool here = false;

	while (std::getline(f, line)) {
		std::uintptr_t from;
		std::uintptr_t to;

		if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ",
			&from, &to) == 2)
			here = at >= from && at < to;
		else if (here && line.compare(0, 8, "VmFlags:") == 0)
			return line + " ";
	}
	return "";
}

static void
hooked()
{
	eddy::arena a(eddy::hook_set{EDDY_ARENA_NODUMP}, 0);
	eddy::hooks_resource b(eddy::hook_set{EDDY_ARENA_NOFORK});
	eddy::hooks_resource c(eddy_hook_set(EDDY_ARENA_NODUMP));
	bool caught = false;

	{
		std::vector<int, eddy::arena_allocator<int>> v(1000, 1, a);
		std::pmr::vector<int> w(1000, 1, &b);
		std::pmr::vector<int> u(1000, 1, &c);

		ok(vm_flags(v.data()).find(" dd ") != std::string::npos &&
			vm_flags(w.data()).find(" dc ") != std::string::npos &&
			vm_flags(u.data()).find(" dd ") != std::string::npos &&
			vm_flags(u.data()).find(" dc ") == std::string::npos &&
			arena_at(w.data()) == b.number(),
		    "arenas of other memory, by flags and by hooks");
	}
	try {
		eddy::arena none(
		    eddy::hook_set{EDDY_ARENA_THP | EDDY_ARENA_NOHUGE});
	} catch (const std::system_error &e) {
		caught = e.code().value() == EINVAL;
	}
	ok(caught, "flags that do not go together");
}

static void
test_resources()
{
	eddy::arena a;
	eddy::arena_resource r(a);
	eddy::arena_resource same(a.number());
	eddy::node_resource node(EDDY_ANY_NODE);
	bool right = true;

	ok(r.is_equal(same) && !r.is_equal(node) &&
		!r.is_equal(*std::pmr::new_delete_resource()),
	    "resources of one arena are equal");
	{
		std::pmr::map<int, std::pmr::string> m(&r);
		std::pmr::vector<wide> w(&node);

		for (int i = 0; i < 1000; i++) {
			m[i] = "a string that is too long for the object";
			right &= arena_at(m[i].data()) == a.number();
			right &= arena_at(&m.find(i)->second) == a.number();
			w.emplace_back();
		}
		right &= arena_at(w.data()) == node.number() &&
			 reinterpret_cast<std::uintptr_t>(w.data()) % 256 == 0;
	}
	ok(right, "containers of std::pmr live in their arenas");
	hooked();
	std::pmr::vector<int> v(100, 5, eddy::default_resource());
	std::pmr::vector<wide> u(100, eddy::default_resource());

	ok(v[99] == 5 && u[99].v == 7 &&
		reinterpret_cast<std::uintptr_t>(u.data()) % 256 == 0,
	    "or where malloc's blocks do");
}

static void
test_allocators()
{
	eddy::arena a;
	eddy::arena b;
	bool right = true;
	{
		using in_arena = eddy::arena_allocator<int>;
		std::vector<int, in_arena> v{in_arena(a)};
		std::vector<int, in_arena> w{in_arena(b)};
		std::list<wide, eddy::arena_allocator<wide>> l{
		    eddy::arena_allocator<wide>(a)};

		for (int i = 0; i < 100000; i++) {
			v.push_back(i);
			w.push_back(-i);
		}
		l.emplace_back();
		right &= arena_at(v.data()) == a.number() &&
			 arena_at(w.data()) == b.number() &&
			 arena_at(&l.front()) == a.number();
		swap(v, w);
		right &= v[99] == -99 && arena_at(v.data()) == b.number();
		w = v;
		right &= w[99] == -99 && arena_at(w.data()) == b.number();
	}
	ok(right, "containers of arenas, swapped and assigned");
	eddy::allocator<int> plain;
	auto r = plain.allocate_at_least(25);

	ok(r.count == 28 && r.ptr != nullptr,
	    "allocate_at_least tells what there is room for");
	r.ptr[27] = 1;
	plain.deallocate(r.ptr, r.count);
	auto s = eddy::arena_allocator<wide>(a).allocate_at_least(3);

	ok(s.count >= 3 && arena_at(s.ptr) == a.number(), "in arenas, too");
	eddy::arena_allocator<wide>(a).deallocate(s.ptr, s.count);
	bool thrown = false;

	try {
		plain.deallocate(plain.allocate(SIZE_MAX / 2), 0);
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	ok(thrown, "too much: std::bad_alloc");
	std::vector<wide, eddy::allocator<wide>> u(100);

	ok(u[99].v == 7, "and malloc's own");
}

static void
test_zero()
{
	const std::size_t n = std::size_t(64) << 20;
	std::size_t before = resident_kib();
	std::vector<int, eddy::zero_allocator<int>> v(n);

	v[n / 2] = 3;
	ok((resident_kib() < before + 8192 || reads_cost()) && v[0] == 0 &&
		v[n - 1] == 0,
	    "256 MiB of zeros hold no memory");
	v.resize(n / 4);
	v[5] = 9;
	v.resize(5);
	v.resize(n / 2);
	ok(v[5] == 0 && v[n / 2 - 1] == 0, "what is used again is zero");
	std::vector<std::string, eddy::zero_allocator<std::string>> s(1000);
	std::vector<wide, eddy::zero_allocator<wide>> w(10);

	s[999] = "value";
	ok(s[0].empty() && s[999] == "value" && w[9].v == 7 &&
		reinterpret_cast<std::uintptr_t>(w.data()) % 256 == 0,
	    "and other types are made as ever");
	auto r = eddy::zero_allocator<int>().allocate_at_least(25);
	bool zero = true;

	for (std::size_t i = 0; i < r.count; i++)
		zero &= r.ptr[i] == 0;
	ok(zero && r.count == 28, "all that there is room for is zero");
	eddy::zero_allocator<int>().deallocate(r.ptr, r.count);
}

struct chained {
	std::uint64_t magic = 0x1234;
	chained *next = nullptr;
	static int made;
	chained() noexcept
	{
		made++;
	}
};

int chained::made = 0;

struct thrower {
	explicit thrower(bool now)
	{
		if (now)
			throw 7;
	}
	~thrower()
	{
		ended++;
	}
	static int ended;
};

int thrower::ended = 0;

static void
test_pools()
{
	{
		eddy::pool<chained> p{eddy::once, "links"};
		chained *a = p.allocate();
		int made = chained::made;
		unsigned n = 0;

		ok(made > 0 && a->magic == 0x1234,
		    "pool(once): slots begin as objects");
		a->next = a;
		p.deallocate(a);
		ok(a->next == a && a->magic == 0x1234 && chained::made == made,
		    "and stay such");
		a = p.allocate();
		ok(arena_at(a) == eddy_pool_arena(p.handle()),
		    "they lie in its arena");
		p.deallocate(a);
		ok(p.shrink([&] { n++; }) > 0 && n == 1,
		    "shrink calls its grace once");
		ok(p.shrink() == 0, "and then there is nothing left");
	}
	{
		eddy::pool<thrower> p{"throwers"};
		eddy::pool<thrower> q = std::move(p);
		bool caught = false;
		thrower *t = q.create(false);

		try {
			(void)q.create(true);
		} catch (int) {
			caught = true;
		}
		ok(caught && thrower::ended == 0,
		    "pool: what a constructor throws arrives");
		q.destroy(t);
		q.destroy(nullptr);
		ok(thrower::ended == 1 && p.handle() == nullptr,
		    "destroy ends an object; a pool moves");
	}
	{
		std::list<int, eddy::pool_allocator<int>> l;
		std::map<int, wide, std::less<int>,
		    eddy::pool_allocator<std::pair<const int, wide>>>
		    m;
		std::vector<int, eddy::pool_allocator<int>> v(100, 7);
		bool good = true;

		for (int i = 0; i < 1000; i++) {
			l.push_back(i);
			m[i].v = i;
		}
		for (int i = 0; i < 1000; i++) {
			good &= l.front() == i && m[i].v == i;
			good &=
			    reinterpret_cast<std::uintptr_t>(&m[i]) % 256 == 0;
			l.pop_front();
		}
		l.push_back(1);
		ok(good, "pool_allocator: lists and maps");
		ok(arena_at(&l.front()) != arena_at(&m[1]) &&
			arena_at(&l.front()) != arena_at(v.data()),
		    "each type of node has an arena of its own, and what is no "
		    "node is malloc's");
	}
}

static std::size_t
regions_there()
{
	std::size_t n = 0;
	std::size_t size = sizeof n;

	if (mallctl("stats.regions.live", &n, &size, nullptr, 0) != 0)
		return 0;
	return n;
}

// Whether p is an object of that region: free leaves it what it was.
static bool
stays(void *p)
{
	void *volatile again = p; // the compiler knows free
	std::size_t size = malloc_usable_size(p);

	std::free(p);
	return size != 0 && malloc_usable_size(again) == size;
}

static void
test_regions()
{
	constexpr std::size_t mib = 1048576;
	eddy::region r;
	eddy::region other{0, mib};

	ok(other.bytes() == mib, "region: first of the options");
	{
		auto *p = static_cast<char *>(r.allocate(20));
		auto *q = static_cast<char *>(r.allocate(20));
		auto a = reinterpret_cast<std::uintptr_t>(r.create<wide>());

		ok(q == p + 32 && a % 256 == 0 && stays(p),
		    "its objects lie one behind the other, aligned");
		r.reset();
		ok(r.allocate(20) == p, "reset: the first is where it was");
	}
	{
		eddy::region_resource in{r};
		eddy::region_resource same{r.handle()};
		eddy::region_resource not_same{other};
		std::pmr::map<int, std::pmr::string> m{&in};
		bool good = true;

		for (int i = 0; i < 1000; i++)
			m[i].assign(40, static_cast<char>(i % 64 + ' '));
		for (int i = 0; i < 1000; i++)
			good &= m[i].size() == 40 &&
				m[i][39] == static_cast<char>(i % 64 + ' ');
		ok(good && stays(m[7].data()), "region_resource: a map of strings");
		void *p = in.allocate(64, 512);
		ok(reinterpret_cast<std::uintptr_t>(p) % 512 == 0,
		    "what is aligned");
		in.deallocate(p, 64, 512);
		ok(in.allocate(64) >= p, "deallocate does nothing");
		ok(in == same && in != not_same && in.handle() == r.handle(),
		    "equal on the same region");
	}
	{
		void *inside = nullptr;
		void *nested = nullptr;
		bool caught = false;

		try {
			eddy::region::section s{r};
			eddy::region::section t{other};

			nested = std::malloc(40);
			throw 7;
		} catch (int) {
		}
		{
			eddy::region::section s{r};

			inside = std::malloc(40);
		}
		void *outside = std::malloc(40);
		ok(stays(inside) && stays(nested),
		    "section: malloc is the region's");
		{
			eddy::region::section s{r};

			ok(eddy_region_destroy(r.handle()) == EBUSY,
			    "a thread is in it");
		}
		ok(outside != inside && eddy_region_leave(r.handle()) == EINVAL,
		    "and out of it again, by an exception as well");
		std::free(outside);
		eddy::region moved = std::move(other);
		ok(other.handle() == nullptr && moved.bytes() == mib,
		    "a region moves");
		other = std::move(moved);
		ok(moved.handle() == nullptr && other.bytes() == mib,
		    "and is assigned");
		try {
			eddy::region none{4000};
		} catch (const std::system_error &e) {
			caught = e.code().value() == EINVAL;
		}
		ok(caught, "none of an arena that is not there");
	}
	{
		std::size_t before = regions_there();
		{
			eddy::arena a;
			eddy::region in{a};

			ok(arena_at(in.allocate(10)) == a.number(),
			    "a region of an arena");
			ok(regions_there() == before + 1, "is one more");
		}
		ok(before == 2 && regions_there() == before,
		    "it ends with its owner");
	}
}

int
main()
{
	test_arena();
	test_resources();
	test_allocators();
	test_zero();
	test_pools();
	test_regions();
	std::printf("1..%d\n", n_tests);
	return 0;
}
