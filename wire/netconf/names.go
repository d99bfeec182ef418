package netconf

// Namespaces.
const (
	Base           = "urn:ietf:params:xml:ns:netconf:base:1.0"         // messages and operations, RFC 6241
	NotificationNS = "urn:ietf:params:xml:ns:netconf:notification:1.0" // RFC 5277
)

// Capabilities, as they stand in a [Hello].
const (
	Base10Capability          = "urn:ietf:params:netconf:base:1.0"
	Base11Capability          = "urn:ietf:params:netconf:base:1.1"
	WritableRunningCapability = "urn:ietf:params:netconf:capability:writable-running:1.0"
	CandidateCapability       = "urn:ietf:params:netconf:capability:candidate:1.0"
	NotificationCapability    = "urn:ietf:params:netconf:capability:notification:1.0"
	InterleaveCapability      = "urn:ietf:params:netconf:capability:interleave:1.0"
)
