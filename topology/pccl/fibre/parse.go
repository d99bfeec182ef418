package fibre

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/topology/pccl"
)

// ParseRequests reads requests between servers as people write them: a line "0 13" for each, from source to
// destination, or a document "requests: [{src: 0, dst: 13}]", as YAML or JSON. Empty lines, and what follows a #, say nothing. The
// name of the file is for errors, which give its line.
func ParseRequests(name string, text []byte, servers int) ([]Request, error) {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("{")) || bytes.HasPrefix(trimmed, []byte("requests:")) {
		return parseDocument(name, text, servers)
	}
	var all []Request
	line := 0
	for row := range strings.Lines(string(text)) {
		line++
		row, _, _ = strings.Cut(row, "#")
		fields := strings.Fields(row)
		if len(fields) == 0 {
			continue
		}
		start := len(row) - len(strings.TrimLeft(row, " \t"))
		if len(fields) != 2 {
			return nil, strictyaml.Errorf(name, position(line, row, start), "", "%.60q: want two servers, source and destination, such as \"0 13\"",
				strings.TrimSpace(row))
		}
		var pair [2]int
		for i, field := range fields {
			start += strings.Index(row[start:], field)
			at := position(line, row, start)
			n, err := strconv.ParseUint(field, 10, 31)
			if err != nil || strconv.FormatUint(n, 10) != field {
				return nil, strictyaml.Errorf(name, at, "", "%.40q is no server: want a number from 0 to %d", field, servers-1)
			}
			pair[i] = int(n)
			if err := checkServer(name, at, "", pair[i], len(all), servers); err != nil {
				return nil, err
			}
			start += len(field)
		}
		all = append(all, Request{pair[0], pair[1]})
	}
	return all, nil
}

func parseDocument(name string, text []byte, servers int) ([]Request, error) {
	var doc struct {
		Requests []struct {
			Src int            `yaml:"src,required"`
			Dst int            `yaml:"dst,required"`
			Pos strictyaml.Pos `yaml:"-,pos"`
		} `yaml:"requests,required"`
	}
	if err := strictyaml.Decode(name, text, &doc); err != nil {
		return nil, err
	}
	all := make([]Request, 0, len(doc.Requests))
	for i, r := range doc.Requests {
		for _, server := range []int{r.Src, r.Dst} {
			if err := checkServer(name, r.Pos, strictyaml.Index("requests", i), server, i, servers); err != nil {
				return nil, err
			}
		}
		all = append(all, Request{r.Src, r.Dst})
	}
	return all, nil
}

// position returns that of the byte at start of a line; its column counts characters.
func position(line int, row string, start int) strictyaml.Pos {
	return strictyaml.Pos{Line: line, Column: 1 + utf8.RuneCountInString(row[:start])}
}

// checkServer returns why a server cannot be an end of request i.
func checkServer(name string, at strictyaml.Pos, path string, server, i, servers int) error {
	if server < 0 || server >= servers {
		return strictyaml.Errorf(name, at, path, "%w: there is no server %d: want 0 to %d", pccl.ErrArgument, server, servers-1)
	}
	if i >= MaxRequests {
		return strictyaml.Errorf(name, at, path, "%w: more than %d circuits", pccl.ErrSize, MaxRequests)
	}
	return nil
}

// ParseGrid reads the size of a grid of servers: "8x8" is 8 rows of 8.
func ParseGrid(text string) (*Graph, error) {
	rows, columns, ok := strings.Cut(text, "x")
	var size [2]int
	for i, field := range []string{rows, columns} {
		n, err := strconv.ParseUint(field, 10, 31)
		if !ok || err != nil || strconv.FormatUint(n, 10) != field {
			return nil, fmt.Errorf("%w: %.40q is no grid of servers: want rows and columns, such as 8x8", pccl.ErrArgument, text)
		}
		size[i] = int(n)
	}
	return Grid(size[0], size[1])
}

// Paper returns how many fibres the paper reports (section 4.2) for random circuits on a grid, if it does.
func Paper(g *Graph, circuits int) (fibres int, known bool) {
	if g.rows != 8 || g.columns != 8 {
		return 0, false
	}
	fibres, known = map[int]int{100: 7, 512: 31}[circuits]
	return fibres, known
}
