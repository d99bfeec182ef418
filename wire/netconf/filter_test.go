package netconf_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/netconf"
)

// Data as in the examples of RFC 6241 section 6.4, and of a switch.
const (
	usersData = `<top xmlns="http://example.com/schema/1.2/config"><users>` +
		`<user><name>root</name><type>superuser</type><full-name>Charlie Root</full-name><company-info><dept>1</dept><id>1</id></company-info></user>` +
		`<user><name>fred</name><type>admin</type><full-name>Fred Flintstone</full-name><company-info><dept>2</dept><id>2</id></company-info></user>` +
		`<user><name>barney</name><type>admin</type><full-name>Barney Rubble</full-name><company-info><dept>2</dept><id>3</id></company-info></user>` +
		`</users><groups/></top>`
	statsData = `<top xmlns="http://example.com/schema/1.2/stats" xmlns:t="http://example.com/schema/1.2/stats"><interfaces>` +
		`<interface t:ifName="eth0"><ifInOctets>45621</ifInOctets></interface>` +
		`<interface t:ifName="eth1"><ifInOctets>774344</ifInOctets></interface>` +
		`</interfaces></top>`
	pairData = `<cross-connects xmlns="` + opsw + `">` +
		`<pair><ingress>1</ingress><egress>33</egress></pair>` +
		`<pair><ingress>2</ingress><egress>34</egress></pair>` +
		`<pair><ingress>3</ingress><egress>35</egress></pair></cross-connects>`
	tagData = `<tag xmlns="` + plts + `">1</tag>`
)

func TestFilter(t *testing.T) {
	const (
		users = ` xmlns="http://example.com/schema/1.2/config"`
		stats = ` xmlns="http://example.com/schema/1.2/stats"`
		cc    = ` xmlns="` + opsw + `"`
	)
	var data []*netconf.Node
	for _, text := range []string{usersData, statsData, pairData, tagData} {
		data = append(data, parse(t, text))
	}
	for _, tt := range []struct{ name, filter, want string }{
		{"6.4.1 none", "", usersData + statsData + pairData + tagData},
		{"6.4.2 empty", `<filter/>`, ""},
		{"6.4.3 selection", `<filter><top` + users + `><users/></top></filter>`, strings.Replace(usersData, "<groups/>", "", 1)},
		{"6.4.3 with an empty list", `<filter><top` + users + `><users><user/></users></top></filter>`, strings.Replace(usersData, "<groups/>", "", 1)},
		{"6.4.4 leaves", `<filter><top` + users + `><users><user><name/></user></users></top></filter>`,
			`<top` + users + `><users><user><name>root</name></user><user><name>fred</name></user><user><name>barney</name></user></users></top>`},
		{"6.4.5 one entry", `<filter><top` + users + `><users><user><name>fred</name></user></users></top></filter>`,
			`<top` + users + `><users><user><name>fred</name><type>admin</type><full-name>Fred Flintstone</full-name><company-info><dept>2</dept><id>2</id></company-info></user></users></top>`},
		{"6.4.6 elements of one entry", `<filter><top` + users + `><users><user><name>fred</name><type/><full-name/></user></users></top></filter>`,
			`<top` + users + `><users><user><name>fred</name><type>admin</type><full-name>Fred Flintstone</full-name></user></users></top>`},
		{"6.4.7 several subtrees", `<filter><top` + users + `><users>` +
			`<user><name>root</name><company-info/></user>` +
			`<user><name>fred</name><company-info><id/></company-info></user>` +
			`<user><name>barney</name><type>superuser</type><company-info><dept/></company-info></user></users></top></filter>`,
			`<top` + users + `><users><user><name>root</name><company-info><dept>1</dept><id>1</id></company-info></user>` +
				`<user><name>fred</name><company-info><id>2</id></company-info></user></users></top>`},
		{"6.4.8 attribute", `<filter><t:top xmlns:t="http://example.com/schema/1.2/stats"><t:interfaces><t:interface t:ifName="eth0"/></t:interfaces></t:top></filter>`,
			`<top` + stats + ` xmlns:t="http://example.com/schema/1.2/stats"><interfaces><interface t:ifName="eth0"><ifInOctets>45621</ifInOctets></interface></interfaces></top>`},
		{"attribute of any namespace", `<filter><top` + stats + `><interfaces><interface ifName="eth1"/></interfaces></top></filter>`,
			`<top` + stats + ` xmlns:t="http://example.com/schema/1.2/stats"><interfaces><interface t:ifName="eth1"><ifInOctets>774344</ifInOctets></interface></interfaces></top>`},
		{"attribute of another namespace", `<filter xmlns:x="x"><top` + stats + `><interfaces><interface x:ifName="eth1"/></interfaces></top></filter>`, ""},
		{"attribute that is not there", `<filter><top` + stats + ` x="1"/></filter>`, ""},
		{"all pairs", `<filter><cross-connects` + cc + `/></filter>`, pairData},
		{"pretty", "<filter>\n<cross-connects" + cc + ">\n</cross-connects>\n</filter>", pairData},
		{"any namespace", `<filter><cross-connects/></filter>`, pairData},
		{"another namespace", `<filter xmlns="` + base + `"><cross-connects/></filter>`, ""},
		{"one pair", `<filter><cross-connects` + cc + "><pair><ingress>\n 2 </ingress></pair></cross-connects></filter>",
			`<cross-connects` + cc + `><pair><ingress>2</ingress><egress>34</egress></pair></cross-connects>`},
		{"two pairs", `<filter><cross-connects` + cc + `><pair><ingress>3</ingress></pair><pair><ingress>1</ingress></pair></cross-connects></filter>`,
			`<cross-connects` + cc + `><pair><ingress>1</ingress><egress>33</egress></pair><pair><ingress>3</ingress><egress>35</egress></pair></cross-connects>`},
		{"two subtrees", `<filter><cross-connects` + cc + `><pair><ingress>3</ingress></pair></cross-connects><cross-connects` + cc + `><pair><egress/></pair></cross-connects></filter>`,
			`<cross-connects` + cc + `><pair><egress>33</egress></pair><pair><egress>34</egress></pair><pair><ingress>3</ingress><egress>35</egress></pair></cross-connects>`},
		{"both keys match", `<filter><cross-connects` + cc + `><pair><ingress>3</ingress><egress>35</egress></pair></cross-connects></filter>`,
			`<cross-connects` + cc + `><pair><ingress>3</ingress><egress>35</egress></pair></cross-connects>`},
		{"one key does not match", `<filter><cross-connects` + cc + `><pair><ingress>3</ingress><egress>34</egress></pair></cross-connects></filter>`, ""},
		{"no such child", `<filter><cross-connects` + cc + `><pair><ingress>3</ingress><x/></pair><y/></cross-connects></filter>`,
			`<cross-connects` + cc + `><pair><ingress>3</ingress></pair></cross-connects>`},
		{"leaves", `<filter><cross-connects` + cc + `><pair><ingress/><egress/></pair></cross-connects></filter>`, pairData},
		{"below a leaf", `<filter><cross-connects` + cc + `><pair><ingress><x/></ingress></pair></cross-connects></filter>`, ""},
		{"content of a container", `<filter><cross-connects` + cc + `>1</cross-connects></filter>`, ""},
		{"leaf at the root", `<filter><tag xmlns="` + plts + `">1</tag></filter>`, tagData},
		{"other leaf at the root", `<filter><tag xmlns="` + plts + `">2</tag></filter>`, ""},
	} {
		var filter *netconf.Node
		if tt.filter != "" {
			filter = parse(t, tt.filter)
		}
		var got strings.Builder
		for _, n := range netconf.Filter(filter, data) {
			if !netconf.Selects(filter, n.Name.Space, n.Name.Local) {
				t.Errorf("%s: Selects denies %s", tt.name, n.Name)
			}
			got.WriteString(n.String())
		}
		want := parse(t, "<r>"+tt.want+"</r>")
		if diff := cmp.Diff(want.String(), parse(t, "<r>"+got.String()+"</r>").String()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if netconf.Selects(parse(t, `<filter/>`), opsw, "cross-connects") || !netconf.Selects(nil, opsw, "x") {
		t.Error("Selects is wrong")
	}
}

// subset reports whether n is a part of one of data, in its order.
func subset(part, data []*netconf.Node) bool {
	for _, n := range part {
		found := false
		for i, d := range data {
			if n == d || n.Name == d.Name && cmp.Equal(n.Attrs, d.Attrs) && subset(n.Children, d.Children) && (len(n.Children) > 0 || n.Text == d.Text) {
				data, found = data[i+1:], true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// What a filter selects is a part of the data, in its order, with the values
// asked for. Data is its own filter, and filtering again changes nothing.
func TestFilterLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(nodes(), 0, 3).Draw(t, "data")
		filter := nodes().Draw(t, "filter")
		was := netconf.El("", "r", data...).String()
		got := netconf.Filter(filter, data)
		if !subset(got, data) {
			t.Fatalf("%s selects %v of %v", filter, got, data)
		}
		if again := netconf.Filter(filter, got); !cmp.Equal(again, got) {
			t.Fatalf("%s selects %v of %v, and then %v", filter, got, data, again)
		}
		if all := netconf.Filter(netconf.El("", "filter", data...), data); len(all) != len(data) {
			t.Fatalf("%v as a filter selects only %v of itself", data, all)
		}
		if s := netconf.El("", "r", data...).String(); s != was {
			t.Fatalf("the data has changed from %s to %s", was, s)
		}
	})
}
