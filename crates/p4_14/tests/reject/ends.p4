// Goes nowhere.
parser start { return loops; } //~ ERROR E1409 goes on to a control function
parser loops { return start; }
control ingress { }
