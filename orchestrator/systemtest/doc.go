// Package systemtest holds the tests of the whole Opus control plane: replayed ranks with their shims, a controller,
// rail orchestrators and emulated switches, judged by package check, which believes none of them. It has no code of its own.
package systemtest
