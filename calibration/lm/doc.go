// Package lm fits models that are not linear in their parameters to measurements, by the
// method of Levenberg and Marquardt: small, dense problems, such as the fringe of an
// interferometer against the power of its heater.
//
// Steps are solved for by QR decomposition of the Jacobian with the damping below it, in
// the scaling of Moré (1978) and with the damping of Nielsen (1999). There are no bounds: a
// model that ends somewhere returns NaN there.
//
// The tests hold the fits against the certified values of the Statistical Reference
// Datasets of NIST for nonlinear regression (https://www.itl.nist.gov/div898/strd/nls/),
// from both of their starts.
package lm
