package loss

// What tests of the tables need.
var (
	TableSizes = tableSizes
	PathTable  = pathTable
	PortTable  = portTable
)

const (
	PathShare = pathShare
	PortShare = portShare
)
