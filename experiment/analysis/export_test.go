package analysis

var (
	TheilSen = theilSen
	Quantile = quantile
)
