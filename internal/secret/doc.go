// Package secret keeps passwords out of files, logs and reports.
//
// A lab file holds a [Ref], which says where the secret is: in an environment
// variable or in a file. Resolving it gives a [Secret], which every formatter
// and encoder writes as "[secret]"; only [Secret.Reveal] gives the value.
//
//	ref, err := secret.ParseRef("env:RAIL0_PASSWORD")
//	...
//	password, err := ref.Resolve(filepath.Dir(labFile))
//	...
//	login(user, password.Reveal())
//
// No error of this package holds a secret, nor a text that was given where a
// reference was wanted: that text may be one.
//
// Memory is not wiped, and a debugger or a core dump shows the value.
package secret
