// Package firmwarenotes holds what is known of the firmware of NICs and optical
// modules, and of switches: notes in Markdown for people, whose headers are data that
// the emulator loads.
//
// # A note
//
// Every Markdown file of this folder is one and comes with ocslab. Its header stands
// between two lines of three hyphens and is YAML, read as strictly as all files of this
// project:
//
//	---
//	title: NVIDIA ConnectX-6 Dx
//	summary: Seconds from light to link.
//	profiles:
//	  autoneg-off:
//	    source: who says so, for all values of the profile that do not say themselves
//	    confidence: high
//	    debounce: {median: 10ms, confidence: low, source: assumed}
//	    detect: 50ms # short for {median: 50ms}
//	    train: {median: 2.95s, spread: 100ms, min: 2.5s, max: 4s}
//	    carrier: {median: 75us, min: 70us, max: 80us}
//	    burst: {window: 30s, free: 2, step: 1s, most: 7s}
//	    refresh: {period: 100ms, confidence: low, source: assumed}
//	---
//	Text for people.
//
// title and summary are needed; all values of a profile are, except burst. Each value
// says where it comes from and how sure that is (high, medium, low), or its profile
// does. See [Profile], [Span] and [Burst] for what the values mean; period is how often
// the module refreshes. None of them is longer than an hour.
//
// A header may also say what the note is of (kind, vendor, model, module, speed,
// firmware), name sources, and hold facts, settings, checks, and when RDMA connections
// send again: see [Note]. docs/firmware-notes.md describes every key. What a source does
// not state is written "unstated", and is empty in the Note. A value without a unit, or
// anything without a source, is refused.
//
// A profile is called by the note's file name and its own: connectx-6-dx/autoneg-off.
// A note with one profile lends it its name: quick. Notes of the user's are called by
// their path: rig.md#fitted, or rig.md if there is one profile in it.
//
// # What is not promised
//
// A profile is a model for emulation, simpler than any firmware. Its numbers hold for
// the card, module, speed and firmware version of their source, and no other.
package firmwarenotes
