// SPDX-License-Identifier: BSD-2-Clause
//
// eddy.hpp - eddy's heap for C++: arenas as objects, allocators and memory
// resources on them, memory that is zero and not touched.  C++17 or later.
//
//     eddy::arena near(1);                        // on node 1
//     std::vector<int, eddy::arena_allocator<int>> v{near};
//
//     eddy::node_resource there(1);               // the same for std::pmr
//     std::pmr::vector<int> w{&there};
//
//     std::vector<int, eddy::zero_allocator<int>> z(1 << 30);  // no memory
//
//     eddy::pool<node> nodes("nodes");            // slots are nodes for ever
//     node *n = nodes.create(7);
//     std::list<int, eddy::pool_allocator<int>> l;
//
//     eddy::region request;                       // ends all at once
//     eddy::region_resource in{request};
//     std::pmr::vector<int> x{&in};
//
// Nothing here keeps state of its own but numbers of arenas, handles, and the
// pools of pool_allocator.  What cannot be had is std::bad_alloc.  THREADS: as
// of the functions of <eddy/eddy.h>; one object may be used by many threads at
// once, but not while it is destroyed, and a region by one at a time.  SINCE
// 0.1.  SEE ALSO eddy_arena_create(3), mallocx(3).
#ifndef EDDY_HPP
#define EDDY_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <eddy/eddy.h>
#include <eddy/hooks.h>
#include <eddy/pool.h>
#include <eddy/region.h>

namespace eddy
{

#if defined(__cpp_lib_allocate_at_least)
template <class P> using allocation_result = std::allocation_result<P>;
#else
// What allocate_at_least returns where the library has no type for it.
template <class P> struct allocation_result {
	P ptr;
	std::size_t count;
};
#endif

namespace detail
{

// The flags of mallocx for an alignment.
constexpr int
align_flags(std::size_t align) noexcept
{
	int lg = 0;

	while (align > 1) {
		align >>= 1;
		lg++;
	}
	return lg;
}

// Bytes of n objects; throws where there is no such number.
template <class T>
std::size_t
bytes_of(std::size_t n)
{
	if (n > static_cast<std::size_t>(
		    std::numeric_limits<std::ptrdiff_t>::max()) /
		    sizeof(T))
		throw std::bad_array_new_length();
	return n != 0 ? n * sizeof(T) : 1;
}

// Objects that a block of n of them really has room for.
template <class T>
std::size_t
room_of(std::size_t n)
{
	std::size_t real = nallocx(bytes_of<T>(n), align_flags(alignof(T)));

	return real / sizeof(T) > n ? real / sizeof(T) : n;
}

inline void *
checked(void *p)
{
	if (p == nullptr)
		throw std::bad_alloc();
	return p;
}

inline unsigned
created(unsigned flags, int node)
{
	eddy_arena_options options = EDDY_ARENA_OPTIONS;
	unsigned number = 0;
	int err;

	options.flags = flags;
	options.node = node;
	err = eddy_arena_create_with(&options, &number);
	if (err != 0)
		throw std::system_error(
		    err, std::generic_category(), "eddy_arena_create_with");
	return number;
}

inline unsigned
created(extent_hooks_t *hooks)
{
	unsigned index = 0;
	std::size_t n = sizeof(index);
	int err = mallctl("arenas.create", &index, &n, &hooks, sizeof(hooks));

	if (err != 0)
		throw std::system_error(
		    err, std::generic_category(), "arenas.create");
	return index + 1;
}

// An action of mallctl on an arena: index is number less one.
inline int
act(unsigned number, const char *what)
{
	std::string name = "arena." + std::to_string(number - 1) + "." + what;

	return mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
}

} // namespace detail

// What the memory of an arena is to be: a sum of flags of <eddy/hooks.h>.
struct hook_set {
	unsigned flags;
};

// ---------------------------------------------------------------------
// An arena that ends with its owner: all of its blocks do, too.
class arena
{
      public:
	// On a node, or (EDDY_ANY_NODE) where its memory is touched.
	// Throws std::system_error: as eddy_arena_create_with(3).
	explicit arena(int node = EDDY_ANY_NODE)
	    : number_(detail::created(0, node))
	{
	}

	// Of such memory, on a node or not.
	explicit arena(hook_set set, int node = EDDY_ANY_NODE)
	    : number_(detail::created(set.flags, node))
	{
	}

	// Of memory that hooks give, which must be there as long as it is.
	// Throws std::system_error: as arenas.create of mallctl(3).
	explicit arena(extent_hooks_t *hooks) : number_(detail::created(hooks))
	{
	}

	// One that was created otherwise, with a file for instance.
	static arena
	adopt(unsigned number) noexcept
	{
		return arena(number, 0);
	}

	arena(const arena &) = delete;
	arena &operator=(const arena &) = delete;

	arena(arena &&other) noexcept
	    : number_(std::exchange(other.number_, 0u))
	{
	}

	arena &
	operator=(arena &&other) noexcept
	{
		if (this != &other) {
			end();
			number_ = std::exchange(other.number_, 0u);
		}
		return *this;
	}

	~arena()
	{
		end();
	}

	// For eddy_arena_malloc(3) and the like.
	unsigned
	number() const noexcept
	{
		return number_;
	}

	// Gives the arena out of hand: it lasts as long as the process.
	unsigned
	release() noexcept
	{
		return std::exchange(number_, 0u);
	}

	// Frees all its blocks at once; nobody may use them any more.
	void
	reset()
	{
		int err = detail::act(number_, "reset");

		if (err != 0)
			throw std::system_error(
			    err, std::generic_category(), "arena.reset");
	}

	// A block at a multiple of align; free(3) takes it.
	void *
	allocate(
	    std::size_t bytes, std::size_t align = alignof(std::max_align_t))
	{
		return detail::checked(
		    eddy_arena_aligned_alloc(number_, align, bytes));
	}

      private:
	arena(unsigned number, int) noexcept : number_(number)
	{
	}

	// Threads that are bound to it keep it.
	void
	end() noexcept
	{
		if (number_ == 0)
			return;
		try {
			static_cast<void>(detail::act(number_, "destroy"));
		} catch (const std::bad_alloc &) {
			// It lasts as long as the process.
		}
		number_ = 0;
	}

	unsigned number_;
};

// ---------------------------------------------------------------------
// std::pmr: memory of an arena, that another keeps.
class arena_resource : public std::pmr::memory_resource
{
      public:
	explicit arena_resource(unsigned number) noexcept : number_(number)
	{
	}

	explicit arena_resource(const arena &a) noexcept : number_(a.number())
	{
	}

	unsigned
	number() const noexcept
	{
		return number_;
	}

      protected:
	void *
	do_allocate(std::size_t bytes, std::size_t align) override
	{
		return detail::checked(eddy_arena_aligned_alloc(
		    number_, align, bytes != 0 ? bytes : 1));
	}

	void
	do_deallocate(void *p, std::size_t, std::size_t) override
	{
		std::free(p);
	}

	bool
	do_is_equal(
	    const std::pmr::memory_resource &other) const noexcept override
	{
		auto r = dynamic_cast<const arena_resource *>(&other);

		return r != nullptr && r->number_ == number_;
	}

      private:
	unsigned number_;
};

// The same with an arena of its own, on a node.
class node_resource : private arena, public arena_resource
{
      public:
	explicit node_resource(int node)
	    : arena(node), arena_resource(static_cast<const arena &>(*this))
	{
	}

	node_resource(const node_resource &) = delete;
	node_resource &operator=(const node_resource &) = delete;

	using arena::reset;
	using arena_resource::number;
};

// The same of other memory: of a set of eddy's, on a node or not, or of hooks.
class hooks_resource : private arena, public arena_resource
{
      public:
	explicit hooks_resource(hook_set set, int node = EDDY_ANY_NODE)
	    : arena(set, node),
	      arena_resource(static_cast<const arena &>(*this))
	{
	}

	explicit hooks_resource(extent_hooks_t *hooks)
	    : arena(hooks), arena_resource(static_cast<const arena &>(*this))
	{
	}

	hooks_resource(const hooks_resource &) = delete;
	hooks_resource &operator=(const hooks_resource &) = delete;

	using arena::reset;
	using arena_resource::number;
};

// Memory of malloc(3) itself: for code that wants a resource.
inline std::pmr::memory_resource *
default_resource() noexcept
{
	class resource : public std::pmr::memory_resource
	{
		void *
		do_allocate(std::size_t bytes, std::size_t align) override
		{
			return detail::checked(mallocx(bytes != 0 ? bytes : 1,
			    detail::align_flags(align)));
		}

		void
		do_deallocate(void *p, std::size_t, std::size_t) override
		{
			std::free(p);
		}

		bool
		do_is_equal(const std::pmr::memory_resource &other)
		    const noexcept override
		{
			return this == &other;
		}
	};
	static resource r;

	return &r;
}

// ---------------------------------------------------------------------
// malloc(3), and what its blocks really hold.
template <class T> class allocator
{
      public:
	using value_type = T;
	using is_always_equal = std::true_type;
	using propagate_on_container_move_assignment = std::true_type;

	allocator() noexcept = default;
	template <class U> allocator(const allocator<U> &) noexcept
	{
	}

	T *
	allocate(std::size_t n)
	{
		return static_cast<T *>(detail::checked(mallocx(
		    detail::bytes_of<T>(n), detail::align_flags(alignof(T)))));
	}

	allocation_result<T *>
	allocate_at_least(std::size_t n)
	{
		if constexpr (alignof(T) <= alignof(void *)) {
			std::size_t real;
			void *p = detail::checked(
			    eddy_alloc_at_least(detail::bytes_of<T>(n), &real));

			return {static_cast<T *>(p), real / sizeof(T)};
		} else {
			n = detail::room_of<T>(n);
			return {allocate(n), n};
		}
	}

	void
	deallocate(T *p, std::size_t) noexcept
	{
		std::free(p);
	}

	friend bool
	operator==(const allocator &, const allocator &) noexcept
	{
		return true;
	}

	friend bool
	operator!=(const allocator &, const allocator &) noexcept
	{
		return false;
	}
};

// How long what a container holds will be there: as of eddy_alloc_hinted(3).
enum class lifetime {
	short_lived = EDDY_LIFETIME_SHORT,
	long_lived = EDDY_LIFETIME_LONG,
};

// Memory that lies apart from what lives otherwise.
template <class T, lifetime L> class hint_allocator
{
      public:
	using value_type = T;
	using is_always_equal = std::true_type;
	using propagate_on_container_move_assignment = std::true_type;

	template <class U> struct rebind {
		using other = hint_allocator<U, L>;
	};

	hint_allocator() noexcept = default;
	template <class U> hint_allocator(const hint_allocator<U, L> &) noexcept
	{
	}

	T *
	allocate(std::size_t n)
	{
		std::size_t bytes = detail::bytes_of<T>(n);

		if constexpr (alignof(T) > alignof(void *)) {
			eddy_hint hint{};

			hint.lifetime = static_cast<eddy_lifetime>(L);
			hint.align = alignof(T);
			return static_cast<T *>(
			    detail::checked(eddy_alloc_hinted(bytes, &hint)));
		} else if constexpr (L == lifetime::short_lived) {
			return static_cast<T *>(
			    detail::checked(eddy_alloc_short(bytes)));
		} else {
			return static_cast<T *>(
			    detail::checked(eddy_alloc_long(bytes)));
		}
	}

	allocation_result<T *>
	allocate_at_least(std::size_t n)
	{
		n = detail::room_of<T>(n);
		return {allocate(n), n};
	}

	void
	deallocate(T *p, std::size_t) noexcept
	{
		std::free(p);
	}

	friend bool
	operator==(const hint_allocator &, const hint_allocator &) noexcept
	{
		return true;
	}

	friend bool
	operator!=(const hint_allocator &, const hint_allocator &) noexcept
	{
		return false;
	}
};

// ---------------------------------------------------------------------
// Memory of an arena, that another keeps.
template <class T> class arena_allocator
{
      public:
	using value_type = T;
	using is_always_equal = std::false_type;
	using propagate_on_container_copy_assignment = std::true_type;
	using propagate_on_container_move_assignment = std::true_type;
	using propagate_on_container_swap = std::true_type;

	explicit arena_allocator(unsigned number) noexcept : number_(number)
	{
	}

	arena_allocator(const arena &a) noexcept : number_(a.number())
	{
	}

	template <class U>
	arena_allocator(const arena_allocator<U> &other) noexcept
	    : number_(other.number())
	{
	}

	unsigned
	number() const noexcept
	{
		return number_;
	}

	T *
	allocate(std::size_t n)
	{
		return static_cast<T *>(
		    detail::checked(eddy_arena_aligned_alloc(
			number_, alignof(T), detail::bytes_of<T>(n))));
	}

	allocation_result<T *>
	allocate_at_least(std::size_t n)
	{
		n = detail::room_of<T>(n);
		return {allocate(n), n};
	}

	void
	deallocate(T *p, std::size_t) noexcept
	{
		std::free(p);
	}

	friend bool
	operator==(const arena_allocator &a, const arena_allocator &b) noexcept
	{
		return a.number_ == b.number_;
	}

	friend bool
	operator!=(const arena_allocator &a, const arena_allocator &b) noexcept
	{
		return a.number_ != b.number_;
	}

      private:
	unsigned number_;
};

// ---------------------------------------------------------------------
// Memory that is zero.  Numbers, enumerators and pointers that are given no
// value are zero, and only those are written that were not: a large container
// of them holds no memory but where something was put.
template <class T> class zero_allocator
{
      public:
	using value_type = T;
	using is_always_equal = std::true_type;
	using propagate_on_container_move_assignment = std::true_type;

	zero_allocator() noexcept = default;
	template <class U> zero_allocator(const zero_allocator<U> &) noexcept
	{
	}

	T *
	allocate(std::size_t n)
	{
		constexpr int zero = 0x40; // MALLOCX_ZERO

		if constexpr (alignof(T) > alignof(std::max_align_t))
			return static_cast<T *>(
			    detail::checked(mallocx(detail::bytes_of<T>(n),
				detail::align_flags(alignof(T)) | zero)));
		else
			return static_cast<T *>(detail::checked(
			    std::calloc(1, detail::bytes_of<T>(n))));
	}

	allocation_result<T *>
	allocate_at_least(std::size_t n)
	{
		n = detail::room_of<T>(n);
		return {allocate(n), n};
	}

	void
	deallocate(T *p, std::size_t) noexcept
	{
		std::free(p);
	}

	template <class U>
	void
	construct(U *p) noexcept(std::is_nothrow_default_constructible_v<U>)
	{
		if constexpr (std::is_arithmetic_v<U> || std::is_enum_v<U> ||
			      std::is_pointer_v<U>) {
			const unsigned char zero[sizeof(U)] = {};

			// What is there is bytes of zero, or of an element that
			// was destroyed.
			if (std::memcmp(static_cast<const void *>(p), zero,
				sizeof(U)) == 0)
				return;
		}
		::new (static_cast<void *>(p)) U();
	}

	template <class U, class... A>
	void
	construct(U *p, A &&...a)
	{
		::new (static_cast<void *>(p)) U(std::forward<A>(a)...);
	}

	friend bool
	operator==(const zero_allocator &, const zero_allocator &) noexcept
	{
		return true;
	}

	friend bool
	operator!=(const zero_allocator &, const zero_allocator &) noexcept
	{
		return false;
	}
};

// ---------------------------------------------------------------------
// Pools: slots that are never anything but a T.  See eddy_pool_create(3).

namespace detail
{

// Whether a pool may have such objects.
template <class T>
constexpr bool
may_pool() noexcept
{
	return alignof(T) <= 4096 &&
	       (sizeof(T) + alignof(T) - 1) / alignof(T) * alignof(T) <= 14336;
}

inline eddy_pool *
created_pool(std::size_t size, std::size_t align, const char *name,
    void (*construct)(void *, void *), unsigned flags, int node)
{
	eddy_pool_options options = EDDY_POOL_OPTIONS;
	eddy_arena_options memory = EDDY_ARENA_OPTIONS;
	eddy_pool *pool = nullptr;
	int err;

	memory.flags = flags;
	memory.node = node;
	options.object_size = size;
	options.align = align;
	options.name = name;
	options.construct = construct;
	options.arena = &memory;
	err = eddy_pool_create(&options, &pool);
	if (err != 0)
		throw std::system_error(
		    err, std::generic_category(), "eddy_pool_create");
	return pool;
}

// The pool that all pool_allocators of a T share, for ever.
template <class T>
std::atomic<eddy_pool *> &
shared_pool() noexcept
{
	static std::atomic<eddy_pool *> pool{nullptr};

	return pool;
}

template <class T>
eddy_pool *
find_pool()
{
	std::atomic<eddy_pool *> &shared = shared_pool<T>();
	eddy_pool *pool = shared.load(std::memory_order_acquire);
	eddy_pool_options options = EDDY_POOL_OPTIONS;
	eddy_pool *mine = nullptr;

	if (pool != nullptr)
		return pool;
	options.object_size = sizeof(T);
	options.align = alignof(T);
	if (eddy_pool_create(&options, &mine) != 0)
		throw std::bad_alloc();
	if (shared.compare_exchange_strong(pool, mine))
		return mine;
	eddy_pool_destroy(mine);
	return pool;
}

} // namespace detail

// Slots are made once: to be given to the constructor of a pool.
struct once_t {
};
inline constexpr once_t once{};

template <class T> class pool
{
	static_assert(detail::may_pool<T>(), "objects of 14 KiB at most");

      public:
	// Slots begin as memory; create and destroy make objects and end them.
	explicit pool(const char *name = nullptr, unsigned flags = 0,
	    int node = EDDY_ANY_NODE)
	    : pool_(detail::created_pool(
		  sizeof(T), alignof(T), name, nullptr, flags, node))
	{
	}

	// Each slot begins as a T() and is one for ever: allocate returns an
	// object that lives, deallocate leaves it alive.
	explicit pool(once_t, const char *name = nullptr, unsigned flags = 0,
	    int node = EDDY_ANY_NODE)
	    : pool_(detail::created_pool(sizeof(T), alignof(T), name,
		  [](void *, void *slot) noexcept { ::new (slot) T(); },
		  flags, node))
	{
		static_assert(std::is_nothrow_default_constructible_v<T>,
		    "within an allocation nothing is thrown");
	}

	pool(pool &&other) noexcept
	    : pool_(std::exchange(other.pool_, nullptr))
	{
	}

	pool &
	operator=(pool &&other) noexcept
	{
		std::swap(pool_, other.pool_);
		return *this;
	}

	~pool()
	{
		eddy_pool_destroy(pool_);
	}

	// What C knows it by; nullptr of one that was moved from.
	eddy_pool *
	handle() const noexcept
	{
		return pool_;
	}

	T *
	allocate()
	{
		return static_cast<T *>(
		    detail::checked(eddy_pool_alloc(pool_)));
	}

	void
	deallocate(T *p) noexcept
	{
		eddy_pool_free(pool_, p);
	}

	template <class... A>
	T *
	create(A &&...a)
	{
		T *p = allocate();

		if constexpr (std::is_nothrow_constructible_v<T, A...>) {
			::new (static_cast<void *>(p))
			    T(std::forward<A>(a)...);
		} else {
			try {
				::new (static_cast<void *>(p))
				    T(std::forward<A>(a)...);
			} catch (...) {
				deallocate(p);
				throw;
			}
		}
		return p;
	}

	void
	destroy(T *p) noexcept
	{
		if (p != nullptr)
			p->~T();
		deallocate(p);
	}

	// Bytes given back; grace() as of eddy_pool_shrink.
	template <class F>
	std::size_t
	shrink(F &&grace)
	{
		using G = std::remove_reference_t<F>;

		return eddy_pool_shrink(
		    pool_, [](void *g) { (*static_cast<G *>(g))(); },
		    const_cast<void *>(
			static_cast<const void *>(std::addressof(grace))));
	}

	std::size_t
	shrink() noexcept
	{
		return eddy_pool_shrink(pool_, nullptr, nullptr);
	}

      private:
	eddy_pool *pool_;
};

// For containers of nodes: each type of node has a pool, which all containers of
// the process share and which lasts as long as the process.  Several objects at
// once, and large ones, are malloc's.
template <class T> class pool_allocator
{
      public:
	using value_type = T;
	using is_always_equal = std::true_type;
	using propagate_on_container_move_assignment = std::true_type;

	pool_allocator() noexcept = default;
	template <class U> pool_allocator(const pool_allocator<U> &) noexcept
	{
	}

	T *
	allocate(std::size_t n)
	{
		if constexpr (detail::may_pool<T>())
			if (n == 1)
				return static_cast<T *>(detail::checked(
				    eddy_pool_alloc(detail::find_pool<T>())));
		return static_cast<T *>(
		    detail::checked(mallocx(detail::bytes_of<T>(n),
			detail::align_flags(alignof(T)))));
	}

	void
	deallocate(T *p, std::size_t n) noexcept
	{
		if (detail::may_pool<T>() && n == 1)
			eddy_pool_free(detail::shared_pool<T>().load(
					   std::memory_order_acquire),
			    p);
		else
			std::free(p);
	}

	friend bool
	operator==(const pool_allocator &, const pool_allocator &) noexcept
	{
		return true;
	}

	friend bool
	operator!=(const pool_allocator &, const pool_allocator &) noexcept
	{
		return false;
	}
};

// ---------------------------------------------------------------------
// Regions: objects that end all at once.  See eddy_region_create(3).

class region
{
      public:
	// arena: 0, what malloc takes.  first, keep: bytes, as the options.
	explicit region(unsigned arena = 0, std::size_t first = 0,
	    std::size_t keep = SIZE_MAX)
	{
		eddy_region_options options = EDDY_REGION_OPTIONS;
		int err;

		options.arena = arena;
		options.first = first;
		options.keep = keep;
		err = eddy_region_create(&options, &region_);
		if (err == ENOMEM)
			throw std::bad_alloc();
		if (err != 0)
			throw std::system_error(
			    err, std::generic_category(), "eddy_region_create");
	}

	// The arena must last longer.
	explicit region(const eddy::arena &a, std::size_t first = 0,
	    std::size_t keep = SIZE_MAX)
	    : region(a.number(), first, keep)
	{
	}

	region(region &&other) noexcept
	    : region_(std::exchange(other.region_, nullptr))
	{
	}

	region &
	operator=(region &&other) noexcept
	{
		std::swap(region_, other.region_);
		return *this;
	}

	// One that a thread is in lasts as long as the process.
	~region()
	{
		static_cast<void>(eddy_region_destroy(region_));
	}

	// What C knows it by; nullptr of one that was moved from.
	eddy_region *
	handle() const noexcept
	{
		return region_;
	}

	std::size_t
	bytes() const noexcept
	{
		return eddy_region_bytes(region_);
	}

	void *
	allocate(
	    std::size_t bytes, std::size_t align = alignof(std::max_align_t))
	{
		return detail::checked(
		    align <= 16
			? eddy_region_alloc(region_, bytes)
			: eddy_region_alloc_aligned(region_, align, bytes));
	}

	// An object that nobody destroys, unless the program does.
	template <class T, class... A>
	T *
	create(A &&...a)
	{
		return ::new (allocate(sizeof(T), alignof(T)))
		    T(std::forward<A>(a)...);
	}

	// Ends all objects, without their destructors.
	void
	reset()
	{
		int err = eddy_region_reset(region_);

		if (err != 0)
			throw std::system_error(
			    err, std::generic_category(), "eddy_region_reset");
	}

	// While there is one, what the thread allocates is the region's.
	class [[nodiscard]] section
	{
	      public:
		explicit section(const region &r) : region_(r.region_)
		{
			int err = eddy_region_enter(region_);

			if (err != 0)
				throw std::system_error(err,
				    std::generic_category(),
				    "eddy_region_enter");
		}

		section(const section &) = delete;
		section &operator=(const section &) = delete;

		~section()
		{
			static_cast<void>(eddy_region_leave(region_));
		}

	      private:
		eddy_region *region_;
	};

      private:
	eddy_region *region_ = nullptr;
};

// std::pmr: objects of a region that another keeps.  Nothing is freed.
class region_resource : public std::pmr::memory_resource
{
      public:
	explicit region_resource(eddy_region *r) noexcept : region_(r)
	{
	}

	explicit region_resource(const region &r) noexcept : region_(r.handle())
	{
	}

	eddy_region *
	handle() const noexcept
	{
		return region_;
	}

      protected:
	void *
	do_allocate(std::size_t bytes, std::size_t align) override
	{
		return detail::checked(
		    align <= 16
			? eddy_region_alloc(region_, bytes)
			: eddy_region_alloc_aligned(region_, align, bytes));
	}

	void
	do_deallocate(void *, std::size_t, std::size_t) override
	{
	}

	bool
	do_is_equal(
	    const std::pmr::memory_resource &other) const noexcept override
	{
		auto r = dynamic_cast<const region_resource *>(&other);

		return r != nullptr && r->region_ == region_;
	}

      private:
	eddy_region *region_;
};

} // namespace eddy

#endif // EDDY_HPP
