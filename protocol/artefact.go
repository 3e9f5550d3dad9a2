package protocol

import "github.com/holdfast-dev/holdfast"

// Names of artefacts.
const (
	// ArtefactPlan is a Plan as JSON, which the server derives from the document:
	// agents do not store it.
	ArtefactPlan     = "summary"
	ArtefactLockFile = "lock.hcl" // .terraform.lock.hcl
	ArtefactOutputs  = "outputs"  // []Output as JSON
	ArtefactErrored  = "errored.tfstate"
	ArtefactDocument = "document" // a plandoc.Document, as its Encode writes it
	ArtefactInfo     = "info"     // the plandoc.Info next to it, as JSON
	ArtefactInput    = "input"    // what InputDigest is made of, as JSON: digests and versions
	// ArtefactResources is what the state holds after an apply or a destroy
	// (however it ended), a drift check, or a plan without changes: []Resource as
	// JSON with addresses, types, providers and ids.
	ArtefactResources = "resources"
	// ArtefactModules is a gzipped tar of the modules that the engine fetched for an
	// apply or a destroy, as it keeps them; kept if a source is not pinned.
	ArtefactModules = "modules"
)

// KnownArtefact reports whether attempts at runs of a kind leave something behind
// under that name. Nothing else is taken from them.
func KnownArtefact(kind holdfast.RunKind, name string) bool {
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
