// Package firmwarenotes holds what is known of the firmware of NICs and optical
// modules: notes in Markdown for people, whose headers are data that the
// emulator loads.
package firmwarenotes
