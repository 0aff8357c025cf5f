const bit<8> told = 1; //~ ERROR E0001 told
const bit<8> untold = 2;
const bit<8> quiet = 3; //~ WARN W0002 not there
