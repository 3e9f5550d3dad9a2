terraform {
  required_providers {
    digitalocean = {
      source  = "digitalocean/digitalocean"
      version = "~> 2.71"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "~> 3.1"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.38"
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
