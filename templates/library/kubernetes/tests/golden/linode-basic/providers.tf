terraform {
  required_providers {
    helm = {
      source  = "hashicorp/helm"
      version = "~> 3.1"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.38"
    }
    linode = {
      source  = "linode/linode"
      version = "~> 3.1"
    }
  }
}

provider "helm" {
  kubernetes = {
    "cluster_ca_certificate" = module.kubernetes.ca_certificate
    "host"                   = module.kubernetes.endpoint
    "token"                  = module.kubernetes.token
  }
}

provider "kubernetes" {
  cluster_ca_certificate = module.kubernetes.ca_certificate
  host                   = module.kubernetes.endpoint
  token                  = module.kubernetes.token
}
