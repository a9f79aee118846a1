/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_cxx.cc - every form of operator new and delete, called as functions so
 * that the compiler keeps the pairs; the new-handler; what is thrown.
 */
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

int count;
int failed;

void
ok(bool held, const char *name)
{
	count++;
	failed += !held;
	std::printf("%s %d - %s\n", held ? "ok" : "not ok", count, name);
	std::fflush(stdout);
}

int handled;

void
gives_up(void)
{
	if (++handled == 3)
		std::set_new_handler(nullptr);
}

void
throws(void)
{
	handled++;
	throw std::bad_alloc();
}

/* The compiler must not know the size. */
std::size_t
too_much(void)
{
	static volatile std::size_t n = SIZE_MAX / 2 - 4096;

	return n;
}

bool
aligned_to(void *p, std::size_t a)
{
	return (reinterpret_cast<std::uintptr_t>(p) & (a - 1)) == 0;
}

void
test_pairs(void)
{
	bool held = true;

	for (std::size_t n = 0; n < 300000; n = n * 3 / 2 + 1) {
		void *p = operator new(n);
		void *q = operator new[](n);
		void *r = operator new(n, std::nothrow);
		void *s = operator new[](n, std::nothrow);

		held = held && p && q && r && s && p != q && r != s;
		std::memset(p, 1, n);
		std::memset(q, 2, n);
		std::memset(r, 3, n);
		std::memset(s, 4, n);
		operator delete(p);
		operator delete[](q);
		operator delete(r, std::nothrow);
		operator delete[](s, std::nothrow);
		operator delete(operator new(n), n);
		operator delete[](operator new[](n), n);
	}
	ok(held, "new and delete, plain, nothrow and sized");
	operator delete(nullptr);
	operator delete[](nullptr);
	operator delete(nullptr, std::size_t(8));
	operator delete(nullptr, std::align_val_t(64));
	ok(true, "delete of a null pointer does nothing");
}

void
test_aligned(void)
{
	static const std::size_t size[] = {
	    0, 1, 8, 24, 40, 63, 64, 65, 200, 1000, 4096, 4097, 14337, 70000};
	bool held = true;

	for (std::size_t a = 1; a <= 65536; a *= 2)
		for (std::size_t n : size) {
			std::align_val_t al{a};
			void *p = operator new(n, al);
			void *q = operator new[](n, al);
			void *r = operator new(n, al, std::nothrow);
			void *s = operator new[](n, al, std::nothrow);

			held = held && p && q && r && s && aligned_to(p, a) &&
			       aligned_to(q, a) && aligned_to(r, a) &&
			       aligned_to(s, a);
			operator delete(p, al);
			operator delete[](q, al);
			operator delete(r, al, std::nothrow);
			operator delete[](s, al, std::nothrow);
			operator delete(operator new(n, al), n, al);
			operator delete[](operator new[](n, al), n, al);
		}
	ok(held, "aligned new and delete, plain, nothrow and sized");
}

/* A sized delete that takes another class than new did shows as an overlap. */
void
test_no_overlap(void)
{
	enum { N = 6000 };
	static unsigned char *p[N];
	bool held = true;

	for (int i = 0; i < N; i++) {
		std::size_t n = 8 + std::size_t(i % 64) * 8;

		p[i] = static_cast<unsigned char *>(
		    i % 2 ? operator new(n) :
			  operator new(n, std::align_val_t(64)));
		std::memset(p[i], i & 255, n);
	}
	for (int i = 0; i < N; i++) {
		std::size_t n = 8 + std::size_t(i % 64) * 8;

		for (std::size_t k = 0; k < n; k++)
			held = held && p[i][k] == (i & 255);
		if (i % 2)
			operator delete(p[i], n);
		else
			operator delete(p[i], n, std::align_val_t(64));
	}
	ok(held, "sized deletes put blocks back where they came from");
}

template <typename F>
bool
throws_bad_alloc(F call)
{
	try {
		call();
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

void
test_failures(void)
{
	const std::align_val_t al{64};
	std::size_t n = too_much();

	ok(throws_bad_alloc([n] { operator delete(operator new(n)); }),
	    "new of too much throws bad_alloc");
	ok(throws_bad_alloc([n] { operator delete[](operator new[](n)); }),
	    "new[] of too much throws bad_alloc");
	ok(throws_bad_alloc([=] { operator delete(operator new(n, al), al); }),
	    "aligned new of too much throws bad_alloc");
	ok(operator new(n, std::nothrow) ==
		nullptr &&operator new[](n, std::nothrow) ==
		nullptr &&operator new(n, al, std::nothrow) ==
		nullptr &&operator new[](n, al, std::nothrow) == nullptr,
	    "nothrow new of too much returns a null pointer");

	std::set_new_handler(gives_up);
	handled = 0;
	ok(throws_bad_alloc([n] { operator delete(operator new(n)); }) &&
		handled == 3,
	    "new calls the new-handler until there is none");
	std::set_new_handler(gives_up);
	handled = 0;
	ok(operator new(n, std::nothrow) == nullptr &&handled == 3,
	    "nothrow new calls the new-handler");
	std::set_new_handler(throws);
	handled = 0;
	ok(throws_bad_alloc([n] { operator delete(operator new(n)); }) &&
		handled == 1,
	    "what the new-handler throws passes through new");
	handled = 0;
	ok(operator new(n, std::nothrow) == nullptr &&handled == 1,
	    "nothrow new turns what it throws into a null pointer");
	handled = 0;
	ok(throws_bad_alloc([=] {
		operator delete(operator new(n, al), al);
	}) && handled == 1,
	    "aligned new calls the new-handler");
	std::set_new_handler(nullptr);
}

/* thread_local objects whose blocks another thread frees. */
struct holder {
	void *p = std::malloc(100);
	~holder()
	{
		std::free(p);
		std::free(std::realloc(std::malloc(10), 5000));
	}
};

thread_local holder mine;
thread_local std::string text = std::string(100, 'x');

void
test_thread_local(void)
{
	bool held = true;

	for (int i = 0; i < 100; i++) {
		void *left = nullptr;
		std::thread t([&] {
			left = mine.p;
			mine.p = nullptr;
			held = held && text.size() == 100;
			text += std::string(1000, 'y');
		});

		t.join();
		std::free(left);
	}
	ok(held && mine.p != nullptr, "thread_local objects come and go");
}

void
test_containers(void)
{
	std::vector<std::string> v;
	bool held = true;

	for (int i = 0; i < 100000; i++)
		v.push_back(std::to_string(i) + std::string(i % 60, '-'));
	for (int i = 0; i < 100000; i++)
		held = held &&
		       v[std::size_t(i)].compare(
			   0, std::to_string(i).size(), std::to_string(i)) == 0;
	ok(held, "a vector of 100000 strings");
}

} /* namespace */

int
main(int argc, char **argv)
{
	const char *so = std::getenv("EDDY_SO");
	const char *pre = std::getenv("LD_PRELOAD");

	(void)argc;
	if (so != nullptr && *so != '\0' &&
	    (pre == nullptr || std::strstr(pre, so) == nullptr)) {
		setenv("LD_PRELOAD", so, 1);
		execv("/proc/self/exe", argv);
		return 99;
	}
	alarm(60);
	test_pairs();
	test_aligned();
	test_no_overlap();
	test_failures();
	test_thread_local();
	test_containers();
	std::printf("1..%d\n", count);
	return failed != 0;
}
