package holdfast

// KnownArtefact reports whether attempts at runs of a kind leave something behind
// under that name. Nothing else is taken from them.
func KnownArtefact(kind RunKind, name string) bool {
	switch name {
	case ArtefactDocument, ArtefactInfo, ArtefactLockFile, ArtefactOutputs, ArtefactInput, ArtefactResources:
		return true
	case ArtefactErrored:
		return kind.Writes()
	default:
		return false
	}
}
