// Package workspace hands out the folders in which attempts are executed.
//
// It owns workspaces/, locations/ and discarded/ in an executor's folder: one workspace for
// each attempt, at the same path for all attempts of a state location, unpacked from the
// bundle and removed at the end, in the background if that takes long. The executor takes
// one for each attempt, and the successor of a dead agent looks here for states that an
// engine could not save. It never removes a workspace that holds such a state, and never
// writes outside of the folder that it is given.
package workspace
