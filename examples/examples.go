// Package examples embeds the example files, so that the program can show what
// it does on a machine that has nothing else.
package examples

import _ "embed"

// OpusTestbed is the lab file opus-testbed.yaml.
//
//go:embed opus-testbed.yaml
var OpusTestbed []byte
