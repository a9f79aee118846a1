#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# decay.sh - the short stress where slow paths give memory back all the time:
# threads are frozen, and die, in the midst of that; and once more where
# background threads do it.
options=dirty_decay_ms:5,muzzy_decay_ms:5,idle_purge_ms:10
sh "${0%/*}/variant.sh" "$options,background_thread_auto:false" \
	'with decay in slow paths' freeze freeze_step kill mixed fork_any |
	sed '/^1\.\./d'
sh "${0%/*}/variant.sh" "$options" 'with decay in background threads' \
	freeze kill mixed fork_any |
	sed 's/^\(\(not \)\{0,1\}ok\) [0-9]*/\1/; s/^1\.\..*/1..9/'
