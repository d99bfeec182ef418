package main

import (
	"os"
	"strings"
	"testing"
)

// What docs/opus.md shows is what this program does.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/opus.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if shown == "" || !strings.Contains(string(source), shown) {
		t.Errorf("main.go does not have what docs/opus.md shows:\n%s", shown)
	}
}
