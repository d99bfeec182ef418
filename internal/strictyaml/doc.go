// Package strictyaml decodes YAML into structs so strictly that every mistake
// a person can make in the file is reported with file, line and column.
//
//	var lab struct {
//		Name     string   `yaml:"name,required"`
//		Switches []Switch `yaml:"switches,required"`
//	}
//	err := strictyaml.Decode("lab.yaml", data, &lab)
//	// lab.yaml:4:10: switches[0].emulate.model: want text, found a list
//
// Decode reports all problems at once, in order of their position, as [Errors].
// Checks of meaning that follow use [DecodePositions] and [Errorf], so that
// they look the same and point as precisely.
//
// # What Go types accept
//
//   - string: what is written, whatever YAML would make of it: 010 is "010",
//     yes is "yes", 1_000 is "1_000", 2026-11-20 is "2026-11-20". People name
//     things; a name that becomes a number or a boolean is never meant. Only
//     the absence of a value (nothing, ~ or null) is refused.
//   - bool: true and false. Not yes, on, True or "true"; the error says so.
//   - integers: decimal digits, checked for range. Not 010 (8 in YAML 1.1, 10
//     to everyone else), 0x10, 1_000, 1e3 or "10".
//   - floats: decimal numbers that are finite; where the tag says so, see below, also .inf.
//   - [time.Duration]: "200ms", "1.5s". A bare number lacks its unit.
//   - [encoding.TextUnmarshaler]: any single value. An error that is an
//     [Offsetter] moves the reported column into the text.
//   - structs, pointers, slices, and maps with keys that are strings, integers or
//     TextUnmarshalers. Keys keep their case and their dots. A list or a map without a value is empty (all its
//     entries may be commented out); for anything else that is an error.
//
// Field names follow the tag `yaml:"name"`, or the lower-case field name;
// `yaml:"name,required"` must be there, the numbers of `yaml:"name,inf"` may be .inf,
// `yaml:"-"` is never decoded, and a [Pos]
// tagged `yaml:"-,pos"` receives the position of the mapping its struct was
// decoded from. Other types are a mistake of the programmer and panic.
//
// # What is refused
//
// Unknown and duplicate keys, more than one document, an empty file, text that
// is not UTF-8, and anchors, aliases, merge keys and tags: each value stands
// in one place only, and no small file becomes a large one.
//
// Functions are safe for concurrent use.
package strictyaml
