# A session of a public client (ncclient) with the emulated switch: prints what
# it sees, one line each. Arguments: port, "1.0" or "1.1".
import sys
import time
from ncclient import manager
from ncclient.operations import RPCError
from ncclient.xml_ import to_ele

OPSW = "http://www.polatis.com/yang/optical-switch"
CONFIG = '<config xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0"><cross-connects xmlns="%s">%%s</cross-connects></config>' % OPSW
FILTER = ("subtree", '<cross-connects xmlns="%s"/>' % OPSW)

if sys.argv[2] == "1.0":
    from ncclient.devices import default
    default.DefaultDeviceHandler._BASE_CAPABILITIES = ["urn:ietf:params:netconf:base:1.0"]

m = manager.connect(host="127.0.0.1", port=int(sys.argv[1]), username="admin", password="root",
                    hostkey_verify=False, allow_agent=False, look_for_keys=False, timeout=60)


def pairs():
    tree = to_ele(m.get(FILTER).data_xml)
    return " ".join("%s>%s" % (p.findtext("{%s}ingress" % OPSW), p.findtext("{%s}egress" % OPSW)) for p in tree.iter("{%s}pair" % OPSW))


print("module", any("module=optical-switch&revision=2018-03-22" in c for c in m.server_capabilities))
m.create_subscription(stream_name="Polatis")
m.edit_config(target="running", config=CONFIG % "<pair><ingress>1</ingress><egress>17</egress></pair><pair><ingress>2</ingress><egress>18</egress></pair>")
print("map", pairs())
n = m.take_notification(timeout=60)
print("notification", "connected 1&gt;17,2&gt;18" in n.notification_xml)
m.edit_config(target="running", config=CONFIG % '<pair nc:operation="delete"><ingress>1</ingress></pair>')
print("map", pairs())
with m.locked("running"):
    m.edit_config(target="running", default_operation="none", config=CONFIG % '<pair nc:operation="create"><ingress>3</ingress><egress>19</egress></pair>')
print("map", pairs())
try:
    m.edit_config(target="running", config=CONFIG % "<pair><ingress>1000</ingress><egress>17</egress></pair>")
except RPCError as e:
    print("error", e.tag, e.message)
label = '<config><port-config xmlns="%s"><port><port-id>5</port-id><label>a &lt;b&gt; &amp; c</label></port></port-config></config>' % OPSW
m.edit_config(target="running", config=label)
got = to_ele(m.get_config("running", filter=("subtree", '<port-config xmlns="%s"><port><port-id>5</port-id></port></port-config>' % OPSW)).data_xml)
print("label", got.findtext(".//{%s}label" % OPSW))
m.dispatch(to_ele('<port-set-state xmlns="%s"><port-disab>5</port-disab></port-set-state>' % OPSW))
got = to_ele(m.get(("subtree", '<port-config xmlns="%s"><port><port-id>5</port-id><status/></port></port-config>' % OPSW)).data_xml)
print("status", got.findtext(".//{%s}status" % OPSW))
print("schema", "module polatis-switch {" in m.get_schema("polatis-switch").data)
m.close_session()
