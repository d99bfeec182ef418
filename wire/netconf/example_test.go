package netconf_test

import (
	"fmt"

	"github.com/ocslab/ocslab/wire/netconf"
)

// A server reads a request and answers it; all attributes come back.
func ExampleAppendReply() {
	msg := `<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="101"><get>
  <filter><cross-connects xmlns="http://www.polatis.com/yang/optical-switch"/></filter>
</get></rpc>`
	n, err := netconf.Parse([]byte(msg))
	if err != nil {
		fmt.Println(err)
		return
	}
	rpc, rerr := netconf.ParseRPC(n)
	if rerr != nil {
		fmt.Printf("%s\n", netconf.AppendReply(nil, rpc, rerr.Node()))
		return
	}
	const ns = "http://www.polatis.com/yang/optical-switch"
	data := []*netconf.Node{
		netconf.El(ns, "cross-connects",
			netconf.El(ns, "pair", netconf.Leaf(ns, "ingress", "1"), netconf.Leaf(ns, "egress", "33"))),
		netconf.El(ns, "port-config"),
	}
	get, _ := netconf.ParseGet(rpc.Operation)
	reply := netconf.AppendReply(nil, rpc, netconf.El(netconf.Base, "data", netconf.Filter(get.Filter, data)...))
	fmt.Printf("%q\n", netconf.AppendMessage(nil, reply, netconf.EndOfMessage))
	// Output:
	// "<rpc-reply xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\" message-id=\"101\"><data><cross-connects xmlns=\"http://www.polatis.com/yang/optical-switch\"><pair><ingress>1</ingress><egress>33</egress></pair></cross-connects></data></rpc-reply>]]>]]>"
}
