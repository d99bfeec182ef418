package tl1_test

import (
	"fmt"

	"github.com/ocslab/ocslab/wire/tl1"
)

func ExampleParseCommand() {
	c, err := tl1.ParseCommand([]byte(`ed-port-label::17:4:::LABEL="rack 3; north";`))
	if err != nil {
		fmt.Println(err)
		return
	}
	label, _ := c.Block(1).Value("label")
	fmt.Println(c.Code, c.AID.Text(), "tag", c.CTAG.Raw)
	fmt.Println(label, "at", c.Block(1).Offset)
	// Output:
	// ED-PORT-LABEL 17 tag 4
	// rack 3; north at 23
}

func ExampleDecoder() {
	var d tl1.Decoder
	for _, chunk := range []string{
		"\r\n\n   OCS1 26-11-20 10:00:00\r\nM  6 COMPLD\r\n   \"1,18\"\r\n   \"2,",
		"17\"\r\n;\r\n\n   OCS1 26-11-20 10:00:01\r\nM  7 DENY\r\n   IDNV\r\n   /* Invalid OXC port: 1000 */\r\n;",
	} {
		d.Feed([]byte(chunk))
		for {
			m, ok, err := d.Next()
			if !ok {
				break
			}
			if err == nil {
				err = m.Err()
			}
			fmt.Println(m.CTAG, m.Text, err)
		}
	}
	// Output:
	// 6 [1,18 2,17] <nil>
	// 7 [] DENY IDNV "Invalid OXC port: 1000" (data not valid)
}
