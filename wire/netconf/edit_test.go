package netconf_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/netconf"
)

// cc wraps entries of cross-connects, with attributes.
func cc(attrs, entries string) string {
	return "<cross-connects" + attrs + ` xmlns="` + opsw + `">` + entries + "</cross-connects>"
}

func pair(in, out int) string {
	return fmt.Sprintf("<pair><ingress>%d</ingress><egress>%d</egress></pair>", in, out)
}

func sys(inside string) string {
	return `<system-config xmlns="` + opsw + `" xmlns:p="` + plts + `">` + inside + "</system-config>"
}

func port(inside string) string {
	return `<port-config xmlns="` + opsw + `"><port>` + inside + `</port></port-config>`
}

// children parses siblings.
func children(t testing.TB, text string) []*netconf.Node {
	t.Helper()
	return parse(t, `<r xmlns:nc="`+base+`" xmlns:xc="`+base+`">`+text+"</r>").Children
}

// texts writes siblings, and changes.
func texts(nodes []*netconf.Node) string {
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString(n.String())
	}
	return b.String()
}

func changeTexts(changes []netconf.Change) []string {
	var list []string
	for _, c := range changes {
		list = append(list, fmt.Sprintf("%s %s", c.Operation, c.Path))
	}
	return list
}

const pairPath = "/opsw:cross-connects/opsw:pair[opsw:ingress='%d']"

func at(op string, in int) string { return op + " " + fmt.Sprintf(pairPath, in) }

func TestEdit(t *testing.T) {
	three := cc("", pair(1, 33)+pair(2, 34)+pair(3, 35))
	user := sys("<user><name>bob</name><type>LOCAL_USER</type><p:group>user</p:group>" +
		"<authorized-key><name>k1</name><key-data>x</key-data></authorized-key></user><p:startup-mode>MODE_PRESERVE</p:startup-mode>")
	for _, tt := range []struct {
		name, config string
		op           netconf.Operation
		edit, want   string
		changes      []string
	}{
		{"nothing", three, "", "", three, nil},
		{"merge into nothing", "", "", cc("", pair(20, 53)+pair(21, 54)), cc("", pair(20, 53)+pair(21, 54)), []string{at("create", 20), at("create", 21)}},
		{"merge a new one", three, "", cc("", pair(4, 36)), cc("", pair(1, 33)+pair(2, 34)+pair(3, 35)+pair(4, 36)), []string{at("create", 4)}},
		{"merge a move", three, "", cc("", pair(2, 99)), cc("", pair(1, 33)+pair(2, 99)+pair(3, 35)), []string{at("merge", 2)}},
		{"merge the same", three, "", three, three, nil},
		{"merge what is not canonical", three, "", cc("", "<pair><egress> 034 </egress>\n<ingress>\n02\n</ingress></pair>"), three, nil},
		{"merge puts keys first", "", "", cc("", "<pair><egress>34</egress><ingress>2</ingress></pair>"), cc("", pair(2, 34)), []string{at("create", 2)}},
		{"merge many", three, "", cc("", pair(5, 3)+pair(2, 99)+pair(6, 1)+pair(7, 2)+pair(5, 3)), cc("", pair(1, 33)+pair(2, 99)+pair(3, 35)+pair(5, 3)+pair(6, 1)+pair(7, 2)),
			[]string{at("merge", 2), at("create", 5), at("create", 6), at("create", 7)}},

		// As ONOS writes it: no namespace, both leaves.
		{"merge with an attribute", three, "", cc("", strings.Replace(pair(4, 36), "<pair", `<pair operation="merge"`, 1)), cc("", pair(1, 33)+pair(2, 34)+pair(3, 35)+pair(4, 36)), []string{at("create", 4)}},
		{"delete with both leaves", three, "", cc("", strings.Replace(pair(2, 77), "<pair", `<pair operation="delete"`, 1)), cc("", pair(1, 33)+pair(3, 35)), []string{at("delete", 2)}},
		// As ncclient users write it: keys only, several prefixes, several in one.
		{"delete by key", three, "", cc("", `<pair nc:operation="delete"><ingress>1</ingress></pair><pair xc:operation="delete"><ingress>3</ingress></pair>`), cc("", pair(2, 34)), []string{at("delete", 1), at("delete", 3)}},
		{"delete all", three, "", `<cross-connects xmlns="` + opsw + `" operation="delete"/>`, "", []string{at("delete", 1), at("delete", 2), at("delete", 3)}},
		{"delete the last", cc("", pair(1, 33)), "", cc("", `<pair nc:operation="delete"><ingress>1</ingress></pair>`), "", []string{at("delete", 1)}},
		{"delete all and connect", three, "", `<cross-connects xmlns="` + opsw + `" nc:operation="delete"/>` + cc("", pair(9, 1)), cc("", pair(9, 1)),
			[]string{at("delete", 1), at("delete", 2), at("delete", 3), at("create", 9)}},
		{"remove what is not there", three, "", cc("", `<pair nc:operation="remove"><ingress>9</ingress></pair>`), three, nil},
		{"remove all of nothing", "", "", cc(` nc:operation="remove"`, ""), "", nil},
		{"delete and create again", three, "", cc("", `<pair nc:operation="delete"><ingress>2</ingress></pair>`+strings.Replace(pair(2, 40), "<pair", `<pair nc:operation="create"`, 1)),
			cc("", pair(1, 33)+pair(3, 35)+pair(2, 40)), []string{at("merge", 2)}},
		{"delete and create again among many", three, "", cc("", pair(4, 1)+pair(5, 2)+pair(6, 3)+`<pair nc:operation="delete"><ingress>2</ingress></pair>`+strings.Replace(pair(2, 40), "<pair", `<pair nc:operation="create"`, 1)+
			`<pair nc:operation="remove"><ingress>6</ingress></pair><pair nc:operation="remove"><ingress>6</ingress></pair>`),
			cc("", pair(1, 33)+pair(3, 35)+pair(4, 1)+pair(5, 2)+pair(2, 40)), []string{at("create", 4), at("create", 5), at("merge", 2)}},
		{"replace the map", three, "", cc(` nc:operation="replace"`, pair(3, 35)+pair(2, 40)+pair(7, 50)), cc("", pair(3, 35)+pair(2, 40)+pair(7, 50)),
			[]string{at("delete", 1), at("merge", 2), at("create", 7)}},
		{"replace by nothing", three, "", cc(` nc:operation="replace"`, ""), "", []string{at("delete", 1), at("delete", 2), at("delete", 3)}},
		{"replace by the same", three, "", cc(` nc:operation="replace"`, pair(1, 33)+pair(2, 34)+pair(3, 35)), three, nil},
		{"replace nothing by nothing", "", "", cc(` nc:operation="replace"`, ""), "", nil},
		{"replace an entry", port("<port-id>1</port-id><label>x</label><peer-port>y</peer-port>"), "", port("<label>z</label><port-id>1</port-id>"), port("<port-id>1</port-id><label>z</label><peer-port>y</peer-port>"), []string{"merge /opsw:port-config/opsw:port[opsw:port-id='1']"}},
		{"replace an entry, really", port("<port-id>1</port-id><label>x</label><peer-port>y</peer-port>"), "", strings.Replace(port("<port-id>1</port-id><label>z</label>"), "<port>", `<port nc:operation="replace">`, 1), port("<port-id>1</port-id><label>z</label>"), []string{"merge /opsw:port-config/opsw:port[opsw:port-id='1']"}},
		{"delete below replace", three, "", cc(` nc:operation="replace"`, pair(3, 35)+`<pair nc:operation="delete"><ingress>1</ingress></pair>`), cc("", pair(3, 35)), []string{at("delete", 1), at("delete", 2)}},
		{"merge below replace", three, "", cc(` nc:operation="replace"`, `<pair nc:operation="merge"><ingress>1</ingress></pair>`), cc("", "<pair><ingress>1</ingress></pair>"), []string{at("delete", 2), at("delete", 3), at("merge", 1)}},
		{"create", three, "", cc("", strings.Replace(pair(4, 36), "<pair", `<pair nc:operation="create"`, 1)), cc("", pair(1, 33)+pair(2, 34)+pair(3, 35)+pair(4, 36)), []string{at("create", 4)}},
		{"create in an empty container", `<cross-connects xmlns="` + opsw + `"/>`, "", cc(` nc:operation="create"`, pair(1, 2)), cc("", pair(1, 2)), []string{at("create", 1)}},
		{"an empty container stays", `<cross-connects xmlns="` + opsw + `"/>`, "", cc(` nc:operation="replace"`, ""), `<cross-connects xmlns="` + opsw + `"/>`, nil},

		{"default none with operations", three, netconf.None, cc("", `<pair nc:operation="delete"><ingress>1</ingress></pair>`+strings.Replace(pair(8, 36), "<pair", `<pair nc:operation="create"`, 1)),
			cc("", pair(2, 34)+pair(3, 35)+pair(8, 36)), []string{at("delete", 1), at("create", 8)}},
		{"default none changes nothing", three, netconf.None, cc("", pair(1, 99)), three, nil},
		{"default none with an empty map", "", netconf.None, cc("", strings.Replace(pair(8, 36), "<pair", `<pair nc:operation="create"`, 1)), cc("", pair(8, 36)), []string{at("create", 8)}},
		{"default replace", three + user, netconf.Replace, cc("", pair(3, 35)), cc("", pair(3, 35)),
			[]string{"delete /opsw:system-config/opsw:user[opsw:name='bob']", "delete /opsw:system-config/plts:startup-mode", at("delete", 1), at("delete", 2)}},
		{"default replace with delete", three, netconf.Replace, `<cross-connects xmlns="` + opsw + `" nc:operation="delete"/>`, "", []string{at("delete", 1), at("delete", 2), at("delete", 3)}},

		{"leaf outside of lists", user, "", sys("<p:startup-mode>MODE_VOLATILE</p:startup-mode>"), strings.Replace(user, "PRESERVE", "VOLATILE", 1), []string{"merge /opsw:system-config/plts:startup-mode"}},
		{"leaf at the root", "", "", `<mask-notification xmlns="` + plts + `">NOTIF_APS</mask-notification>`, `<mask-notification xmlns="` + plts + `">NOTIF_APS</mask-notification>`, []string{"create /plts:mask-notification"}},
		{"leaf replaced", user, "", sys(`<p:startup-mode nc:operation="replace">x</p:startup-mode>`), strings.Replace(user, "MODE_PRESERVE", "x", 1), []string{"merge /opsw:system-config/plts:startup-mode"}},
		{"leaf deleted", user, "", sys(`<p:startup-mode nc:operation="delete"/>`), strings.Replace(user, "<p:startup-mode>MODE_PRESERVE</p:startup-mode>", "", 1), []string{"delete /opsw:system-config/plts:startup-mode"}},
		{"leaf of another module in an entry", user, "", sys("<user><name>bob</name><p:group>admin</p:group></user>"), strings.Replace(user, ">user<", ">admin<", 1), []string{"merge /opsw:system-config/opsw:user[opsw:name='bob']"}},
		{"entries of an inner list", user, "", sys("<user><name>bob</name><authorized-key><name>k2</name></authorized-key></user>"), strings.Replace(user, "</user>", "<authorized-key><name>k2</name></authorized-key></user>", 1),
			[]string{"create /opsw:system-config/opsw:user[opsw:name='bob']/opsw:authorized-key[opsw:name='k2']"}},
		{"both", user, "", sys(`<user><name>bob</name><type>x</type><authorized-key nc:operation="delete"><name>k1</name></authorized-key></user>`),
			sys("<user><name>bob</name><type>x</type><p:group>user</p:group></user><p:startup-mode>MODE_PRESERVE</p:startup-mode>"),
			[]string{"merge /opsw:system-config/opsw:user[opsw:name='bob']", "delete /opsw:system-config/opsw:user[opsw:name='bob']/opsw:authorized-key[opsw:name='k1']"}},
		{"two keys, quotes", "", "", sys(`<radius-servers><radius-server><port>1</port><ip-address>a'b</ip-address><more><secret>s</secret></more></radius-server></radius-servers>`),
			sys(`<radius-servers><radius-server><ip-address>a'b</ip-address><port>1</port><more><secret>s</secret></more></radius-server></radius-servers>`),
			[]string{`create /opsw:system-config/opsw:radius-servers/opsw:radius-server[opsw:ip-address="a'b"][opsw:port='1']`}},
		{"leaf in a container of an entry", sys(`<radius-servers><radius-server><ip-address>'"</ip-address><port>1</port></radius-server></radius-servers>`), "",
			sys(`<radius-servers><radius-server><ip-address>'"</ip-address><port>1</port><more><secret>s</secret></more></radius-server></radius-servers>`),
			sys(`<radius-servers><radius-server><ip-address>'"</ip-address><port>1</port><more><secret>s</secret></more></radius-server></radius-servers>`),
			[]string{`merge /opsw:system-config/opsw:radius-servers/opsw:radius-server[opsw:ip-address=concat('',"'",'"')][opsw:port='1']`}},
		{"leaf-list", `<tag xmlns="` + plts + `">1</tag><tag xmlns="` + plts + `">2</tag>`, "", `<tag xmlns="` + plts + `" nc:operation="delete">02</tag><tag xmlns="` + plts + `">1</tag><tag xmlns="` + plts + `">3</tag>`,
			`<tag xmlns="` + plts + `">1</tag><tag xmlns="` + plts + `">3</tag>`, []string{"delete /plts:tag[.='2']", "create /plts:tag[.='3']"}},
		{"leaf-list of an entry", "", "", `<groups xmlns="` + opsw + `"><group><group-name>g</group-name><ingress>2</ingress><ingress>1</ingress><ingress>2</ingress></group></groups>`,
			`<groups xmlns="` + opsw + `"><group><group-name>g</group-name><ingress>2</ingress><ingress>1</ingress></group></groups>`, []string{"create /opsw:groups/opsw:group[opsw:group-name='g']"}},
		{"what the schema does not know", `<x><y/></x>` + three, "", cc("", pair(1, 33)+pair(2, 0+99)+pair(3, 35)+pair(4, 5)+pair(6, 7)), "<x><y/></x>" + cc("", pair(1, 33)+pair(2, 99)+pair(3, 35)+pair(4, 5)+pair(6, 7)), []string{at("merge", 2), at("create", 4), at("create", 6)}},
		{"what the schema does not know, replaced", `<x><y/></x>` + three, netconf.Replace, three, three, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := children(t, tt.config)
			e := netconf.EditConfig{Default: tt.op, Config: children(t, tt.edit)}
			before := texts(config) + texts(e.Config)
			got, changes, err := netconf.Edit(config, e, model)
			if err != nil {
				t.Fatal(err)
			}
			if want := children(t, tt.want); !slices.EqualFunc(want, got, netconf.Equal) {
				t.Errorf("got  %s\nwant %s", texts(got), texts(want))
			}
			if diff := cmp.Diff(tt.changes, changeTexts(changes)); diff != "" {
				t.Error(diff)
			}
			for _, c := range changes {
				if (c.Before == nil) != (c.Operation == netconf.Create) || (c.After == nil) != (c.Operation == netconf.Delete) {
					t.Errorf("%s has before %v and after %v", c.Path, c.Before, c.After)
				}
			}
			if len(tt.changes) == 0 && !slices.Equal(got, config) && e.Default != netconf.Replace && !strings.Contains(tt.edit, "replace") {
				t.Error("what has not changed is not shared")
			}
			if after := texts(config) + texts(e.Config); after != before {
				t.Errorf("the old configuration or the edit is now %s, was %s", after, before)
			}
		})
	}
}

func TestEditErrors(t *testing.T) {
	config := cc("", pair(1, 33)) + `<groups xmlns="` + opsw + `"/>` + sys("<user><name>bob</name></user>")
	const (
		ccPath   = "/opsw:cross-connects"
		onePath  = "/opsw:cross-connects/opsw:pair[opsw:ingress='1']"
		ninePath = "/opsw:cross-connects/opsw:pair[opsw:ingress='9']"
	)
	for _, tt := range []struct {
		name string
		op   netconf.Operation
		edit string
		tag  string
		path string
		info string
	}{
		{"create what is there", "", cc("", strings.Replace(pair(1, 34), "<pair", `<pair nc:operation="create"`, 1)), netconf.DataExists, onePath, ""},
		{"create a container that is there", "", cc(` nc:operation="create"`, pair(2, 3)), netconf.DataExists, ccPath, ""},
		{"create twice", "", cc(` nc:operation="merge"`, strings.Repeat(strings.Replace(pair(9, 34), "<pair", `<pair nc:operation="create"`, 1), 2)), netconf.DataExists, ninePath, ""},
		{"merge twice with different values", "", cc("", pair(9, 33)+pair(9, 34)), netconf.BadElement, ninePath, "bad-element=pair"},
		{"delete what is not there", "", cc("", `<pair nc:operation="delete"><ingress>9</ingress></pair>`), netconf.DataMissing, ninePath, ""},
		{"delete twice", "", cc("", strings.Repeat(`<pair nc:operation="delete"><ingress>1</ingress></pair>`, 2)), netconf.DataMissing, onePath, ""},
		{"delete a container that is not there", "", `<port-config xmlns="` + opsw + `" nc:operation="delete"/>`, netconf.DataMissing, "/opsw:port-config", ""},
		{"delete an empty container", "", `<groups xmlns="` + opsw + `" nc:operation="delete"/>`, netconf.DataMissing, "/opsw:groups", ""},
		{"delete a leaf that is not there", "", sys(`<user><name>bob</name><type nc:operation="delete"/></user>`), netconf.DataMissing, "/opsw:system-config/opsw:user[opsw:name='bob']/opsw:type", ""},
		{"delete below replace", "", cc(` nc:operation="replace"`, `<pair nc:operation="delete"><ingress>9</ingress></pair>`), netconf.DataMissing, ninePath, ""},
		{"none with a new entry", netconf.None, cc("", pair(9, 1)), netconf.DataMissing, ninePath, ""},
		{"none with a new leaf", netconf.None, sys("<user><name>bob</name><type>x</type></user>"), netconf.DataMissing, "/opsw:system-config/opsw:user[opsw:name='bob']/opsw:type", ""},
		{"no key", "", cc("", `<pair nc:operation="delete"/>`), netconf.MissingElement, "/opsw:cross-connects/opsw:pair", "bad-element=ingress"},
		{"key of another namespace", "", cc("", `<pair><ingress xmlns="`+plts+`">1</ingress></pair>`), netconf.MissingElement, "/opsw:cross-connects/opsw:pair", "bad-element=ingress"},
		{"one key of two", "", sys("<radius-servers><radius-server><ip-address>a</ip-address></radius-server></radius-servers>"), netconf.MissingElement, "/opsw:system-config/opsw:radius-servers/opsw:radius-server", "bad-element=port"},
		{"bad key", "", cc("", pair(100000, 1)), netconf.InvalidValue, "/opsw:cross-connects/opsw:pair/opsw:ingress", ""},
		{"bad key to delete", "", cc("", `<pair nc:operation="delete"><ingress>x</ingress></pair>`), netconf.InvalidValue, "/opsw:cross-connects/opsw:pair/opsw:ingress", ""},
		{"bad value", "", cc("", pair(1, 0)), netconf.InvalidValue, onePath + "/opsw:egress", ""},
		{"bad value in a leaf-list", "", `<tag xmlns="` + plts + `">x</tag>`, netconf.InvalidValue, "/plts:tag", ""},
		{"error of the schema", "", sys("<user><name>bob</name><p:group>root</p:group></user>"), netconf.BadElement, "/opsw:system-config/opsw:user[opsw:name='bob']/plts:group", ""},
		{"error and path of the schema", "", sys("<elsewhere>x</elsewhere>"), netconf.OperationFailed, "/elsewhere", ""},
		{"delete a key", "", cc("", `<pair><ingress nc:operation="delete">1</ingress></pair>`), netconf.BadAttribute, onePath + "/opsw:ingress", "bad-attribute=operation bad-element=ingress"},
		{"unknown operation", "", cc("", `<pair nc:operation="none"><ingress>1</ingress></pair>`), netconf.BadAttribute, "/opsw:cross-connects/opsw:pair", "bad-attribute=operation bad-element=pair"},
		{"two operations", "", cc("", `<pair operation="merge" nc:operation="delete"><ingress>1</ingress></pair>`), netconf.BadAttribute, "/opsw:cross-connects/opsw:pair", "bad-attribute=operation bad-element=pair"},
		{"unknown attribute", "", cc(` xmlns:yang="urn:ietf:params:xml:ns:yang:1"`, `<pair yang:insert="first"><ingress>1</ingress></pair>`), netconf.UnknownAttribute, "/opsw:cross-connects/opsw:pair", "bad-attribute=insert bad-element=pair"},
		{"operation of another namespace", "", cc(` xmlns:x="x"`, `<pair x:operation="merge"><ingress>1</ingress></pair>`), netconf.UnknownAttribute, "/opsw:cross-connects/opsw:pair", "bad-attribute=operation bad-element=pair"},
		{"unknown element", "", cc("", "<pairs/>"), netconf.UnknownElement, ccPath, "bad-element=pairs"},
		{"unknown element at the root", "", `<x xmlns="` + opsw + `"/>`, netconf.UnknownElement, "", "bad-element=x"},
		{"unknown namespace", "", `<x xmlns="y"/>`, netconf.UnknownNamespace, "", "bad-element=x bad-namespace=y"},
		{"no namespace", "", `<cross-connects/>`, netconf.UnknownNamespace, "", "bad-element=cross-connects bad-namespace="},
		{"unknown namespace inside", "", cc("", `<pair><ingress>1</ingress><egress xmlns="y">1</egress></pair>`), netconf.UnknownNamespace, onePath, "bad-element=egress bad-namespace=y"},
		{"state", "", port("<port-id>1</port-id><status>x</status>"), netconf.UnknownElement, "/opsw:port-config/opsw:port[opsw:port-id='1']/opsw:status", "bad-element=status"},
		{"element in a leaf", "", cc("", "<pair><ingress>1</ingress><egress><x/></egress></pair>"), netconf.UnknownElement, onePath + "/opsw:egress", "bad-element=x"},
		{"text in a container", "", `<cross-connects xmlns="` + opsw + `">1</cross-connects>`, netconf.BadElement, ccPath, "bad-element=cross-connects"},
		{"key twice", "", cc("", "<pair><ingress>1</ingress><ingress>2</ingress></pair>"), netconf.BadElement, onePath + "/opsw:ingress", "bad-element=ingress"},
		{"leaf twice", "", cc("", "<pair><ingress>1</ingress><egress>2</egress><egress>3</egress></pair>"), netconf.BadElement, onePath + "/opsw:egress", "bad-element=egress"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, changes, err := netconf.Edit(children(t, config), netconf.EditConfig{Default: tt.op, Config: children(t, tt.edit)}, model)
			if err == nil || got != nil || changes != nil {
				t.Fatalf("got %v, %v, %v", texts(got), changeTexts(changes), err)
			}
			var info []string
			for _, n := range err.Info {
				info = append(info, n.Name.Local+"="+n.Text)
			}
			if err.Tag != tt.tag || err.Path != tt.path || strings.Join(info, " ") != tt.info || err.Type != netconf.TypeApplication || err.Message == "" {
				t.Errorf("got %v with %v\nwant %s at %s with %s", err, info, tt.tag, tt.path, tt.info)
			}
			// The prefixes in the path are declared where it stands.
			if path := parse(t, err.Node().String()).Child(base, "error-path"); path != nil && tt.path[1] == 'o' {
				if v, _ := path.Attr("xmlns", "opsw"); v != opsw {
					t.Errorf("opsw is not declared in %s", path)
				}
			}
		})
	}
}

// drawMap draws a map as a configuration and as what it means.
func drawMap(t *rapid.T, what string) map[int]int {
	return rapid.MapOfN(rapid.IntRange(1, 12), rapid.IntRange(1, 3), 0, 8).Draw(t, what)
}

func mapText(m map[int]int, attrs, each string) string {
	var b strings.Builder
	for _, in := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(strings.Replace(pair(in, m[in]), "<pair", "<pair"+each, 1))
	}
	if b.Len() == 0 {
		return `<cross-connects xmlns="` + opsw + `"` + attrs + `/>`
	}
	return cc(attrs, b.String())
}

func readMap(config []*netconf.Node) map[int]int {
	m := map[int]int{}
	for _, c := range config {
		for _, p := range c.Children {
			var in, out int
			fmt.Sscan(p.Value("ingress"), &in)
			fmt.Sscan(p.Value("egress"), &out)
			m[in] = out
		}
	}
	return m
}

// replay applies changes to a map.
func replay(m map[int]int, changes []netconf.Change) map[int]int {
	m = maps.Clone(m)
	for _, c := range changes {
		var in, out int
		n := c.After
		if n == nil {
			n = c.Before
		}
		fmt.Sscan(n.Value("ingress"), &in)
		fmt.Sscan(n.Value("egress"), &out)
		if c.After == nil {
			delete(m, in)
		} else {
			m[in] = out
		}
	}
	return m
}

func TestEditLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		was, wish := drawMap(rt, "was"), drawMap(rt, "wish")
		config := children(t, mapText(was, "", ""))
		old := texts(config)
		merged := maps.Clone(was)
		maps.Copy(merged, wish)
		rest := maps.Clone(was)
		maps.DeleteFunc(rest, func(in, _ int) bool { _, ok := wish[in]; return ok })
		overlap := len(rest) < len(was)
		missing := len(merged) > len(was)

		for _, tt := range []struct {
			name string
			op   netconf.Operation
			edit string
			want map[int]int
			fail bool
		}{
			{"merge", "", mapText(wish, "", ""), merged, false},
			{"replace", "", mapText(wish, ` nc:operation="replace"`, ""), wish, false},
			{"default replace", netconf.Replace, mapText(wish, "", ""), wish, false},
			{"remove", "", mapText(wish, "", ` nc:operation="remove"`), rest, false},
			{"none", netconf.None, mapText(wish, "", ""), was, missing},
			{"delete", "", mapText(wish, "", ` nc:operation="delete"`), rest, missing},
			{"create", "", mapText(wish, "", ` nc:operation="create"`), merged, overlap},
			{"remove and create", "", mapText(wish, "", ` nc:operation="remove"`) + mapText(wish, "", ` nc:operation="create"`), merged, false},
			{"delete all and merge", "", mapText(nil, ` nc:operation="remove"`, "") + mapText(wish, "", ""), wish, false},
		} {
			e := netconf.EditConfig{Default: tt.op, Config: children(t, tt.edit)}
			got, changes, err := netconf.Edit(config, e, model)
			if s := texts(config); s != old {
				rt.Fatalf("%s: the old configuration is now %s, was %s", tt.name, s, old)
			}
			if (err != nil) != tt.fail {
				rt.Fatalf("%s: %v", tt.name, err)
			}
			if err != nil {
				continue
			}
			if m := readMap(got); !maps.Equal(m, tt.want) {
				rt.Fatalf("%s: %v, want %v", tt.name, m, tt.want)
			}
			if m := replay(was, changes); !maps.Equal(m, tt.want) {
				rt.Fatalf("%s: the changes %v lead to %v, want %v", tt.name, changeTexts(changes), m, tt.want)
			}
			if len(changes) == 0 != maps.Equal(was, tt.want) {
				rt.Fatalf("%s: changes %v", tt.name, changeTexts(changes))
			}
			if tt.name == "merge" || strings.HasSuffix(tt.name, "replace") {
				again, changes, err := netconf.Edit(got, e, model)
				if err != nil || len(changes) > 0 || !maps.Equal(readMap(again), tt.want) {
					rt.Fatalf("%s again: %v, %v", tt.name, changeTexts(changes), err)
				}
			}
		}
	})
}
