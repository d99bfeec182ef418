package keymap_test

import (
	"slices"
	"testing"

	"github.com/ocslab/ocslab/tui/keymap"
)

// places are those whose keys mean something at once, as the screens have them.
var places = [][]keymap.Where{
	{keymap.InPatch, keymap.InLists, keymap.Everywhere},
	{keymap.InLinks, keymap.InLists, keymap.Everywhere},
	{keymap.InTimeline, keymap.InLists, keymap.Everywhere},
	{keymap.InExperiment, keymap.InLists, keymap.Everywhere},
	{keymap.InDevices, keymap.InLists, keymap.Everywhere},
	{keymap.InLog, keymap.InLists, keymap.Everywhere},
	{keymap.InPreview},
}

// A key means one thing in a place.
func TestBindings_Unique(t *testing.T) {
	for _, all := range places {
		seen := map[string]keymap.Action{}
		for _, b := range keymap.Bindings() {
			if !slices.ContainsFunc(all, b.In) {
				continue
			}
			for _, k := range b.Keys {
				if other, ok := seen[k]; ok && other != b.Action {
					t.Errorf("%v: %q is %s and %s", all[0], k, other, b.Action)
				}
				seen[k] = b.Action
			}
		}
	}
}

func TestBindings_Complete(t *testing.T) {
	for _, b := range keymap.Bindings() {
		if b.Help == "" || len(b.Where) == 0 {
			t.Errorf("%s: no help, or nowhere", b.Action)
		}
		for _, k := range b.Keys {
			if got, ok := keymap.For(k, b.Where[0]); !ok || got.Action != b.Action {
				t.Errorf("For(%q, %s) = %s", k, b.Where[0], got.Action)
			}
		}
		if got, ok := keymap.Of(b.Action); !ok || got.Mutates != b.Mutates {
			t.Errorf("Of(%s): mutates %v, and elsewhere %v", b.Action, got.Mutates, b.Mutates)
		}
	}
}

// What accepts a change means nothing else anywhere, so that a key held down or struck twice
// accepts nothing, and one struck too late does nothing.
func TestAccept(t *testing.T) {
	accept, _ := keymap.Of(keymap.Accept)
	for _, b := range keymap.Bindings() {
		if b.Action == keymap.Accept {
			continue
		}
		for _, k := range b.Keys {
			if slices.Contains(accept.Keys, k) {
				t.Errorf("%q is %s elsewhere, and accepts", k, b.Action)
			}
		}
	}
	cancel, _ := keymap.Of(keymap.Cancel)
	if !slices.Contains(cancel.Keys, "esc") {
		t.Error("esc does not cancel")
	}
}

func TestMutates(t *testing.T) {
	if !keymap.Mutates("never heard of") {
		t.Error("an action that is not known is let through")
	}
	if keymap.Mutates(keymap.Help) || !keymap.Mutates(keymap.Connect) {
		t.Error("help mutates, or connect does not")
	}
}

func TestName(t *testing.T) {
	for key, want := range map[string]string{" ": "space", "ctrl+p": "^p", "up": "↑", "x": "x"} {
		if got := keymap.Name(key); got != want {
			t.Errorf("Name(%q) = %q, want %q", key, got, want)
		}
	}
}
