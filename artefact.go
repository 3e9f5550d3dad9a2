package holdfast

// KnownArtefact reports whether attempts at runs of a kind leave something behind
// under that name. Nothing else is taken from them.
func KnownArtefact(kind RunKind, name string) bool {
	switch name {
	case ArtefactDocument, ArtefactInfo, ArtefactLockFile, ArtefactOutputs, ArtefactInput, ArtefactResources:
		return true
	case ArtefactErrored, ArtefactModules: // code that an apply uses is never a plan's
		return kind.Applies()
	default:
		return false
	}
}

// ArtefactLimit is how many bytes an artefact may have, 0 if nothing has that
// name. As an attempt has one of each name, their sum bounds what it leaves.
func ArtefactLimit(name string) int64 {
	switch name {
	case ArtefactDocument, ArtefactErrored: // as large as states are
		return 512 << 20
	case ArtefactInfo:
		return 256 << 20
	case ArtefactOutputs, ArtefactResources:
		return 64 << 20
	case ArtefactModules:
		return 16 << 20
	case ArtefactLockFile, ArtefactInput:
		return 4 << 20
	default:
		return 0
	}
}
