terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.25"
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

provider "aws" {
  region = local.cluster.region
}

provider "helm" {
  kubernetes = {
    "cluster_ca_certificate" = module.kubernetes.ca_certificate
    "exec" = {
      "api_version" = module.kubernetes.exec.api_version
      "args"        = module.kubernetes.exec.args
      "command"     = module.kubernetes.exec.command
    }
    "host" = module.kubernetes.endpoint
  }
}

provider "kubernetes" {
  cluster_ca_certificate = module.kubernetes.ca_certificate
  host                   = module.kubernetes.endpoint

  exec {
    api_version = module.kubernetes.exec.api_version
    args        = module.kubernetes.exec.args
    command     = module.kubernetes.exec.command
  }
}
