package tui

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/tui/keymap"
)

const (
	keysBegin = "<!-- Keys and commands: made by go test ./tui -run TestDocs -update -->\n"
	keysEnd   = "<!-- End of keys and commands -->\n"
)

// TestDocs: the tables of docs/tui.md are those of package keymap and of the commands.
func TestDocs(t *testing.T) {
	const path = "../docs/tui.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), keysBegin)
	got, tail, ended := strings.Cut(rest, keysEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the keys", path)
	}
	want := keyTables()
	if got == want {
		return
	}
	if f, ok := flag.Lookup("update").Value.(flag.Getter); !ok || f.Get() != true {
		t.Fatalf("the keys in %s are not those there are: go test ./tui -run TestDocs -update", path)
	}
	if err := os.WriteFile(path, []byte(head+keysBegin+want+keysEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// keyTables are all keys, by place, and all commands, as Markdown.
func keyTables() string {
	var b strings.Builder
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + cell(s) + "`"
	}
	for _, w := range []keymap.Where{keymap.Everywhere, keymap.InLists, keymap.InPatch, keymap.InLinks, keymap.InTimeline,
		keymap.InExperiment, keymap.InDevices, keymap.InLog, keymap.InPreview} {
		table := ""
		for _, k := range keymap.Bindings() {
			if !k.In(w) {
				continue
			}
			var keys []string
			for _, x := range k.Keys {
				keys = append(keys, code(keymap.Name(x)))
			}
			if len(keys) == 0 {
				keys = []string{code(":" + string(k.Action))}
			}
			mutates := ""
			if k.Mutates {
				mutates = "no"
			}
			table += fmt.Sprintf("| %s | %s | %s | %s |\n", strings.Join(keys, " "), cell(k.Help), code(k.CLI), mutates)
		}
		if table != "" {
			fmt.Fprintf(&b, "\n### %s\n\n| key | does | as a command | while read-only |\n| --- | --- | --- | --- |\n%s", placeTitles[w], table)
		}
	}
	b.WriteString("\n### Commands after `:`\n\n| command | does | while read-only |\n| --- | --- | --- |\n")
	for _, c := range commands {
		mutates := ""
		if c.mutates {
			mutates = "no"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(strings.TrimSpace(c.name+" "+c.usage)), cell(c.about), mutates)
	}
	b.WriteString("\n")
	return b.String()
}
