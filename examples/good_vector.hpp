// SPDX-License-Identifier: BSD-2-Clause
//
// good_vector.hpp - a vector that grows by good sizes: an example of what
// <eddy/eddy.h> gives to who writes containers.  C++17 or later.
//
//   - It asks for half as much again, and takes all of the block that it gets:
//     eddy_good_size says how large that is, and nothing behind the last
//     element is lost.
//   - Elements that may be moved as bytes are grown by realloc, which leaves
//     blocks of 16 KiB and more where they are if there is room behind them,
//     and moves the pages of those of 1 MiB and more instead of copying.
//   - Others get a new block by eddy_alloc_at_least, and are moved one by one.
#ifndef EDDY_EXAMPLE_GOOD_VECTOR_HPP
#define EDDY_EXAMPLE_GOOD_VECTOR_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <eddy/eddy.h>

namespace example
{

// Whether an object is the same elsewhere if its bytes are.  A program may say
// so of types of its own: of most that own something, but not of those that
// point into themselves.
template <class T>
inline constexpr bool relocatable = std::is_trivially_copyable_v<T>;

template <class T> inline constexpr bool relocatable<std::unique_ptr<T>> = true;

template <class T> class good_vector
{
	static_assert(alignof(T) <= alignof(std::max_align_t),
	    "malloc aligns no further");
	static_assert(relocatable<T> || std::is_nothrow_move_constructible_v<T>,
	    "a move that fails half way cannot be undone");

      public:
	good_vector() noexcept = default;
	good_vector(const good_vector &) = delete;
	good_vector &operator=(const good_vector &) = delete;

	good_vector(good_vector &&other) noexcept
	    : data_(std::exchange(other.data_, nullptr)),
	      size_(std::exchange(other.size_, 0u)),
	      room_(std::exchange(other.room_, 0u))
	{
	}

	good_vector &
	operator=(good_vector &&other) noexcept
	{
		std::swap(data_, other.data_);
		std::swap(size_, other.size_);
		std::swap(room_, other.room_);
		return *this;
	}

	~good_vector()
	{
		std::destroy_n(data_, size_);
		std::free(data_);
	}

	template <class... A>
	T &
	emplace_back(A &&...a)
	{
		if (size_ == room_) {
			// What is added may lie in the block that goes.
			T added(std::forward<A>(a)...);

			grow();
			return add(std::move(added));
		}
		return add(std::forward<A>(a)...);
	}

	void
	push_back(const T &v)
	{
		emplace_back(v);
	}

	void
	push_back(T &&v)
	{
		emplace_back(std::move(v));
	}

	void
	pop_back() noexcept
	{
		std::destroy_at(data_ + --size_);
	}

	T *
	data() noexcept
	{
		return data_;
	}

	T *
	begin() noexcept
	{
		return data_;
	}

	T *
	end() noexcept
	{
		return data_ + size_;
	}

	T &
	operator[](std::size_t i) noexcept
	{
		return data_[i];
	}

	std::size_t
	size() const noexcept
	{
		return size_;
	}

	std::size_t
	capacity() const noexcept
	{
		return room_;
	}

      private:
	template <class... A>
	T &
	add(A &&...a)
	{
		T *p = ::new (static_cast<void *>(data_ + size_))
		    T(std::forward<A>(a)...);

		size_++;
		return *p;
	}

	// Half as much again, 4 at first.
	std::size_t
	wanted() const
	{
		std::size_t n = room_ < 4 ? room_ + 4 : room_ + room_ / 2;

		if (n > PTRDIFF_MAX / sizeof(T))
			throw std::bad_array_new_length();
		return n * sizeof(T);
	}

	void
	grow()
	{
		std::size_t bytes = wanted();
		void *p;

		if constexpr (relocatable<T>) {
			bytes = eddy_good_size(bytes);
			p = bytes != 0 ? std::realloc(
					     static_cast<void *>(data_), bytes)
				       : nullptr;
			if (p == nullptr)
				throw std::bad_alloc();
		} else {
			p = eddy_alloc_at_least(bytes, &bytes);
			if (p == nullptr)
				throw std::bad_alloc();
			std::uninitialized_move_n(
			    data_, size_, static_cast<T *>(p));
			std::destroy_n(data_, size_);
			std::free(data_);
		}
		data_ = static_cast<T *>(p);
		room_ = bytes / sizeof(T);
	}

	T *data_ = nullptr;
	std::size_t size_ = 0;
	std::size_t room_ = 0;
};

} // namespace example

#endif // EDDY_EXAMPLE_GOOD_VECTOR_HPP
