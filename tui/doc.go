// Package tui is the terminal UI: a place where engineers like to toggle light.
package tui
