//go:build !linux

package idle

// unmapProgram does nothing: other systems are for development.
func unmapProgram() {}
