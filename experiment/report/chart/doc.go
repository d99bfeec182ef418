// Package chart draws figures about time as SVG: waterfalls, distributions, box plots, heat
// maps, and lines.
//
// A chart is plain data; [SVG] makes a file of it and [HTML] an element for a page that has
// [Style] and [Defs] once. Neither has a script or fetches anything. Charts are as wide as a
// column of text and as high as they need to be; in a page there is a second drawing for
// telephones, so that text need not be scaled. What does not fit is cut, with the whole as a
// tooltip. Colours are CSS variables, light and dark, and never the only difference: stages have
// markers and labels of their own, and curves are dashed differently.
//
// Times are nanoseconds. An axis has one unit and round numbers. What is not finite is not
// drawn, and texts may hold anything.
//
// Charts have no state: drawing does not change them and may go on in several goroutines.
package chart
