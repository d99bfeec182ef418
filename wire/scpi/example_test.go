package scpi_test

import (
	"fmt"

	"github.com/ocslab/ocslab/wire/scpi"
)

// A device finds out what a line asks for.
func Example() {
	commands := new(scpi.Tree[string])
	commands.Add("OXC:SWITch:CONNect:ADD", "add cross-connects")
	commands.Add("OXC:SWITch:CONNect:STATe?", "list them")
	commands.Add("*OPC?", "say when all is done")

	var d scpi.Decoder
	d.Feed([]byte(":oxc:switch:conn:add (@1,2),(@17,18);state?;*OPC?\r\n"))
	line, _, _ := d.Next()
	m, _ := scpi.ParseMessage(line)
	var path scpi.Path
	for _, u := range m.Units {
		what, name, next, err := commands.Find(path, u)
		path = next
		fmt.Println(name, "-", what, len(u.Params), err)
	}
	// Output:
	// OXC.SWIT.CONN.ADD - add cross-connects 2 <nil>
	// OXC.SWIT.CONN.STAT - list them 0 <nil>
	// *OPC - say when all is done 0 <nil>
}

// A client reads what a device holds.
func ExampleParseLists() {
	lists, err := scpi.ParseLists("(@1,2,3),(@19,18,22)")
	fmt.Println(lists, err)
	_, err = scpi.ParseLists("(@1,2,3),(@19,18")
	fmt.Println(err)
	// Output:
	// [[1 2 3] [19 18 22]] <nil>
	// scpi: want a comma or ) behind a channel at offset 17 of "(@1,2,3),(@19,18"
}

func ExampleParseError() {
	errs, err := scpi.ParseError(`-113, "Undefined header;:OXC:FOO",0,"No error"`)
	fmt.Println(errs, err)
	// Output:
	// [error -113 "Undefined header;:OXC:FOO"] <nil>
}
