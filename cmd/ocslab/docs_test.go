package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// The pages of the repository are part of the program: what they link to is there, what
// they tell to type is understood, what they show is what comes out.
//
// In a block
//
//	```sh               commands; subcommands and flags have to exist
//	```console          a session: "$ " begins a command, what follows is its output; it is
//	                    run, see TestPages_Run, unless it is ```console shown
//	```yaml NAME        the whole file of that name: of the repository, if it begins with
//	                    examples/ or the like, or one that the sessions of the page need
//	```go PATH          a part of that file
//
// A line "…" in a block stands for lines that are left out.

// page is a Markdown file.
type page struct {
	name   string // from the root of the repository: "docs/cli.md"
	source []byte
	links  []pageLink
	ids    map[string]bool // anchors
	blocks []pageBlock
	spans  []pageSpan // of code in running text
	rows   []pageRow  // of tables
}

type pageLink struct {
	to   string
	line int
}

type pageSpan struct {
	text string
	line int
}

type pageRow struct {
	section string   // the heading above
	cells   []string // as written
	spans   [][]string
}

// pageBlock is a fenced block of code.
type pageBlock struct {
	lang, name string
	text       string
	line       int // of its first line
	start, end int // of its text in the source
}

const repositoryRoot = "../.."

// pages returns all Markdown files of the repository.
func pages(t *testing.T) []*page {
	t.Helper()
	var all []*page
	err := fs.WalkDir(os.DirFS(repositoryRoot), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		source, err := os.ReadFile(filepath.Join(repositoryRoot, name))
		if err != nil {
			return err
		}
		all = append(all, readPage(name, source))
		return nil
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d pages: %v", len(all), err)
	}
	return all
}

// noteHeader is the YAML at the head of a note, between two lines of three hyphens.
var noteHeader = regexp.MustCompile(`\A---\n(?s:.*?)\n---\n`)

// pageAnchor is one that a page has set itself.
var pageAnchor = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)

func readPage(name string, source []byte) *page {
	p := &page{name: name, source: source, ids: map[string]bool{}}
	body := noteHeader.ReplaceAllFunc(source, func(h []byte) []byte { // positions stay
		blank := bytes.Repeat([]byte(" "), len(h))
		for i, b := range h {
			if b == '\n' {
				blank[i] = b
			}
		}
		return blank
	})
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(body))
	for _, m := range pageAnchor.FindAllSubmatch(body, -1) {
		p.ids[string(m[1])] = true
	}
	section, seen := "", map[string]int{}
	line := func(n ast.Node) int {
		for ; n != nil; n = n.Parent() {
			if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
				return 1 + bytes.Count(body[:n.Lines().At(0).Start], []byte("\n"))
			}
		}
		return 0
	}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // our function returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			section = plainText(n, body)
			id := headingSlug(section)
			if k := seen[id]; k > 0 {
				p.ids[fmt.Sprintf("%s-%d", id, k)] = true
			} else {
				p.ids[id] = true
			}
			seen[id]++
		case *ast.Link:
			p.links = append(p.links, pageLink{string(n.Destination), line(n)})
		case *ast.Image:
			p.links = append(p.links, pageLink{string(n.Destination), line(n)})
		case *ast.CodeSpan:
			p.spans = append(p.spans, pageSpan{plainText(n, body), line(n)})
		case *east.TableRow:
			p.rows = append(p.rows, pageTableRow(section, n, body))
		case *ast.FencedCodeBlock:
			p.blocks = append(p.blocks, fencedBlock(n, body))
		}
		return ast.WalkContinue, nil
	})
	return p
}

func fencedBlock(n *ast.FencedCodeBlock, source []byte) pageBlock {
	var b pageBlock
	if n.Info != nil {
		info := strings.Fields(string(n.Info.Value(source)))
		if len(info) > 0 {
			b.lang = info[0]
		}
		if len(info) > 1 {
			b.name = info[1]
		}
	}
	if lines := n.Lines(); lines.Len() > 0 {
		b.start, b.end = lines.At(0).Start, lines.At(lines.Len()-1).Stop
	}
	b.text = string(source[b.start:b.end])
	b.line = 1 + bytes.Count(source[:b.start], []byte("\n"))
	return b
}

func pageTableRow(section string, n ast.Node, source []byte) pageRow {
	r := pageRow{section: section}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		r.cells = append(r.cells, plainText(c, source))
		var spans []string
		_ = ast.Walk(c, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // our function returns no error
			if s, ok := n.(*ast.CodeSpan); ok && entering {
				spans = append(spans, plainText(s, source))
			}
			return ast.WalkContinue, nil
		})
		r.spans = append(r.spans, spans)
	}
	return r
}

// plainText returns the text of a node without its markup.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // our function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.ReplaceAll(b.String(), `\|`, "|")
}

// headingSlug is the anchor that GitHub gives a heading.
func headingSlug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(heading))
}

// What a page links to is there, with its anchor.
func TestPages_Links(t *testing.T) {
	all := pages(t)
	byName := map[string]*page{}
	for _, p := range all {
		byName[p.name] = p
	}
	for _, p := range all {
		for _, l := range p.links {
			u, err := url.Parse(l.to)
			if err != nil {
				t.Errorf("%s:%d: %s: %v", p.name, l.line, l.to, err)
				continue
			}
			if u.Scheme != "" {
				continue // of the rest of the world a test cannot tell
			}
			to := p.name
			if u.Path != "" {
				to = path.Join(path.Dir(p.name), u.Path)
			}
			if _, err := os.Stat(filepath.Join(repositoryRoot, to)); err != nil || strings.HasPrefix(to, "../") {
				t.Errorf("%s:%d: link to %s: no such file in the repository", p.name, l.line, l.to)
				continue
			}
			if target := byName[to]; u.Fragment != "" && (target == nil || !target.ids[u.Fragment]) {
				t.Errorf("%s:%d: link to %s: %s has no such heading", p.name, l.line, l.to, to)
			}
		}
	}
}

// The index of a folder leads to all that is in it.
func TestPages_Index(t *testing.T) {
	indexed := map[string]map[string]bool{} // by folder
	for _, p := range pages(t) {
		if path.Base(p.name) != "README.md" {
			continue
		}
		links := map[string]bool{}
		for _, l := range p.links {
			file, _, _ := strings.Cut(l.to, "#")
			links[path.Join(path.Dir(p.name), file)] = true
		}
		indexed[path.Dir(p.name)] = links
	}
	for _, name := range examplesIn(t) {
		dir := path.Dir("examples/" + name)
		if strings.HasSuffix(name, ".go") || name == "README.md" { // a program is indexed by its folder
			continue
		}
		if links := indexed["examples"]; !links["examples/"+name] && !links[dir] {
			t.Errorf("examples/README.md does not say what %s is for", name)
		}
	}
	for _, p := range pages(t) {
		if path.Dir(p.name) == "docs" && p.name != "docs/README.md" && !indexed["docs"][p.name] {
			t.Errorf("docs/README.md does not lead to %s", p.name)
		}
	}
}

// somebodys are paths that are on the machine of whoever wrote them, and on no other.
var somebodys = regexp.MustCompile(`/(root|home/[a-z]\w*|Users/\w+|work|tmp/\w+/go-build\w*)/`)

func TestPages_NobodysMachine(t *testing.T) {
	for _, p := range pages(t) {
		for i, line := range strings.Split(string(p.source), "\n") {
			if m := somebodys.FindString(line); m != "" {
				t.Errorf("%s:%d: %s is a path of somebody's machine", p.name, i+1, m)
			}
		}
	}
	for _, name := range examplesIn(t) {
		data, err := os.ReadFile(filepath.Join(examplesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if m := somebodys.Find(data); m != nil {
			t.Errorf("examples/%s: %s is a path of somebody's machine", name, m)
		}
	}
}

// pageNamed returns the pages of these names.
func pageNamed(t *testing.T, all []*page, name string) *page {
	t.Helper()
	i := slices.IndexFunc(all, func(p *page) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("there is no page %s", name)
	}
	return all[i]
}

// GitHub's rules for anchors, by headings that are there.
func TestSlug(t *testing.T) {
	for heading, want := range map[string]string{
		"Exit codes": "exit-codes", "SSH: whose key is that?": "ssh-whose-key-is-that", "The ack_ns of a `change`": "the-ack_ns-of-a-change",
		"Über 1 ms": "über-1-ms", "A / B": "a--b",
	} {
		p := readPage("x.md", []byte("# "+heading+"\n"))
		if !p.ids[want] {
			t.Errorf("%q: got %v, want %s", heading, p.ids, want)
		}
	}
	p := readPage("x.md", []byte("---\ntitle: größe\n---\n# A\n# A\n\n[b](c.md#d) and ![e](f.svg)\n\n```sh\nx\n```\n"))
	if !p.ids["a"] || !p.ids["a-1"] || len(p.links) != 2 || p.links[0].line != 7 || len(p.blocks) != 1 || p.blocks[0].line != 10 {
		t.Errorf("ids %v, links %v, blocks %v", p.ids, p.links, p.blocks)
	}
}
