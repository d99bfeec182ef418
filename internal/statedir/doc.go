// Package statedir keeps small files that must survive: the process killed in
// the middle of a write, several processes at once, the power lost.
//
//   - [Path] and [Make] give the directory such files are in.
//   - [WriteFile] replaces a whole file or leaves the old one.
//   - [Lock] lets one process at a time do more than that. The kernel frees
//     the lock when its holder dies, however it dies. [RLock] is for readers.
//   - [Seal] and [Sealed] give an object a checksum.
//   - [OpenFile] and its like are those of package os, which [Inject] can make
//     fail in tests, as it does all the above.
//
// All functions are safe for concurrent use.
//
// What is not guaranteed: a disk that lies about fsync, and on Windows the
// rename in WriteFile after a power loss, as directories cannot be flushed
// there. On systems with neither flock nor LockFileEx (AIX, Plan 9,
// WebAssembly) Lock fails with [errors.ErrUnsupported] rather than pretend.
package statedir
